#ifndef MPI_HYBRID_SURVIVE_REVOCATION_H_
#define MPI_HYBRID_SURVIVE_REVOCATION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <vector>

namespace weft::mpi::survive {

// Who of the members of a revoked communicator is to be told of it by the one at place `self` of `size`: those 1, 2, 4 ... places behind it, and for
// each who is gone the next one behind that. As each tells the next that lives, and does so again when that one dies, all that live hear of it as
// long as one of them has; the steps that grow make it quick.
std::vector<int> WhomToTell(int self, int size, const std::function<bool(int)>& is_gone);

// The revocations that this process knows of, and whom it has told. No I/O.
class Revocations {
 public:
  static constexpr size_t kMost = 1024;  // older ones are forgotten: whoever has not heard of them by then was told by others

  // `processes` by place, of which this one is at `self`.
  void Add(uint64_t identity, int self, std::vector<int> processes);
  bool Has(uint64_t identity) const;
  using IsGone = std::function<bool(int process)>;
  using Tell = std::function<void(uint64_t identity, int process)>;
  // Tells whoever is to be told and was not yet: when one was added, and after each death.
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
