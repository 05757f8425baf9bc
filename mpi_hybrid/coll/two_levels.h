#ifndef MPI_HYBRID_COLL_TWO_LEVELS_H_
#define MPI_HYBRID_COLL_TWO_LEVELS_H_

#include <memory>
#include <span>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/schedule.h"
#include "mpi_hybrid/coll/tuning.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"

namespace weft::mpi {

// Collectives of a group on several hosts, at least one of which has several of its ranks. The ranks of a host exchange
// data with each other, and one rank per host exchanges data with other hosts. A short message between hosts costs many
// times as much as one through memory; without this, each rank of a host would send its own.
//
// The hosts are those that the launcher has told to all ranks of the job alike, so that no messages are needed to find
// them. Whether the ranks of a host really share memory affects only speed.
class TwoLevels final : public Comm::Extension {
 public:
  // `hosts`: by rank, a number for its host.
  TwoLevels(int rank, std::span<const int> hosts);
  // The levels of an intracommunicator. Null: there are no two levels, or some of its ranks are not of this process's
  // job.
  static const TwoLevels* Of(Comm& comm);

  // Whether there are several hosts, and several ranks on one of them.
  bool exists() const { return leaders_.size() > 1 && leaders_.size() < host_of_.size(); }
  // Whether they are better for so many bytes (as in tuning.h) than the algorithms that know only ranks. Those keep all ranks of a host busy at once, and
  // nobody copies data for others.
  bool AreFor(Collective collective, MPI_Aint bytes) const;
  // Whether a reduction of `bytes` bytes has the same result, to the last bit, as the algorithm that Choose would take
  // without regard to hosts. This always holds if the operation is exact. Otherwise each host must have the same power
  // of two of consecutive ranks, and the number of hosts must be a power of two.
  bool KeepsResult(const Op& op, const Datatype& type, MPI_Aint bytes) const;
  // The same for a reduction to `root`.
  bool KeepsResult(const Op& op, const Datatype& type, MPI_Aint bytes, int root) const;

  // The same for a reduction of `bytes` bytes whose pieces are scattered.
  bool KeepsScattered(const Op& op, const Datatype& type, MPI_Aint bytes) const;

  // Functions that build this rank's schedule, as in algorithms.h.
  void BuildBarrier(Schedule& schedule) const;
  void BuildBroadcast(Schedule& schedule, void* buffer, MPI_Aint count, const Datatype& type, int root) const;
  void BuildReduce(Schedule& schedule, const Reduction& reduction, int root) const;
  void BuildAllReduce(Schedule& schedule, const Reduction& reduction) const;
  void BuildReduceScatter(Schedule& schedule, const Reduction& reduction, std::span<const MPI_Aint> counts) const;
  void BuildGather(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const;
  void BuildScatter(Schedule& schedule, const Uniform& send, const Uniform& receive, int root) const;
  void BuildAllGather(Schedule& schedule, const Uniform& send, const Uniform& receive) const;
  void BuildAllToAll(Schedule& schedule, const Uniform& send, const Uniform& receive) const;

 private:
  static constexpr MPI_Aint kMostBytes = 32 * 1024;      // of a vector; of the blocks of a host's ranks in a gather
  static constexpr MPI_Aint kMostGathered = 64 * 1024;   // bytes of all
  static constexpr MPI_Aint kMostExchanged = 64 * 1024;  // bytes of a host
  static constexpr int64_t kMostPieces = 4096;           // that a leader puts in order

  struct ByHost {
    std::vector<MPI_Aint> counts, displacements;  // bytes
  };
  ByHost BlocksByHost(MPI_Aint block) const;
  int size() const { return static_cast<int>(host_of_.size()); }
  int Me() const { return here_[static_cast<size_t>(place_)]; }
  int FirstOf(int host) const { return first_of_[static_cast<size_t>(host)]; }
  int RanksOn(int host) const { return first_of_[static_cast<size_t>(host) + 1] - FirstOf(host); }
  // The first rank of each host has the result at its reduction.receive.
  void ReduceToLeaders(Schedule& schedule, const Reduction& reduction) const;
  template <typename Move>
  void ForEachRun(Move move) const;  // move(place in order_, rank, number of ranks)
  void PackInOrder(Schedule& schedule, const Uniform& from, uint8_t* to) const;
  void UnpackInOrder(Schedule& schedule, const uint8_t* from, const Uniform& to) const;
  Place InHost() const { return {place_, static_cast<int>(here_.size())}; }
  Place AmongHosts() const { return {host_, static_cast<int>(leaders_.size())}; }
  // The ranks that speak for their hosts, by host. The root speaks for its own host.
  std::vector<int> SpeakersFor(int root) const;
  // The place within this host of the rank that speaks for it.
  int SpeakerHere(int root) const;

  std::vector<int> host_of_;  // by rank: the host's number, in the order of first ranks
  std::vector<int> leaders_;  // by host: its first rank
  std::vector<int> here_;     // ranks of this host, ascending
  std::vector<int> order_;    // all ranks, by host
  std::vector<int> first_of_;  // by host: the place of its first rank in order_; behind the last their number
  int most_each_ = 0;         // ranks of the host that has most
  bool is_equal_ = false;     // all hosts have as many
  bool in_order_ = false;     // order_ is that of ranks
  int host_ = 0, place_ = 0;  // this rank's host; its place in here_
  bool is_even_ = false;      // for KeepsResult: the numbers are powers of two as required there
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_TWO_LEVELS_H_
