#ifndef MPI_HYBRID_SURVIVE_REVOCATION_H_
#define MPI_HYBRID_SURVIVE_REVOCATION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <vector>

namespace weft::mpi::survive {

// Returns the members of a revoked communicator that the member at place `self` of `size` tells of the revocation:
// those at 1, 2, 4, ... places behind it. For each of them that is gone, it is the next one behind. Every member tells
// the next living one, and tells another one if that one dies. Therefore all living members learn of the revocation as
// long as one of them knows. The growing steps make it fast.
std::vector<int> WhomToTell(int self, int size, const std::function<bool(int)>& is_gone);

// The revocations that this process knows, and the processes that it has told. No I/O.
class Revocations {
 public:
  // older ones are forgotten; by then other processes have told those that did not know
  static constexpr size_t kMost = 1024;

  // `processes`: the members by place; this process is at `self`.
  void Add(uint64_t identity, int self, std::vector<int> processes);
  bool Has(uint64_t identity) const;
  using IsGone = std::function<bool(int process)>;
  using Tell = std::function<void(uint64_t identity, int process)>;
  // Tells all processes that must be told and were not yet told. Call it after Add and after each death.
  void Spread(const IsGone& is_gone, const Tell& tell);

 private:
  struct Known {
    uint64_t identity = 0;
    int self = 0;
    std::vector<int> processes;
    std::set<int> told;  // places
  };

  std::deque<Known> known_;
};

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_REVOCATION_H_
