#ifndef MPI_HYBRID_COLL_TWO_LEVELS_H_
#define MPI_HYBRID_COLL_TWO_LEVELS_H_

#include <memory>
#include <span>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/schedule.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"

namespace weft::mpi {

// Collectives of a group on several hosts, some of which have several of its ranks: within each host by its ranks, between hosts by one rank of
// each. A short message between hosts costs many times what one through memory does, and by ranks alone each of a host's would have its own.
//
// What hosts there are is what the launcher said to all ranks of the job alike: nobody is asked, and whether a host's ranks really have memory in
// common makes no difference but of speed.
class TwoLevels final : public Comm::Extension {
 public:
  // Up to so many bytes. Long data keep all ranks of a host busy at once, by the algorithms that know only ranks.
  static constexpr MPI_Aint kMostBytes = 32 * 1024;

  // `hosts`: by rank, a number for its host.
  TwoLevels(int rank, std::span<const int> hosts);
  // Of an intracommunicator; null: there are no two levels, or not all its ranks are of this process's job.
  static const TwoLevels* Of(Comm& comm);

  // There are several hosts, and several ranks on one.
  bool exists() const { return leaders_.size() > 1 && leaders_.size() < host_of_.size(); }
  // Whether a reduction of `bytes` has the same result to the last bit as the one that Choose would take without hosts: always where the
  // operation is exact, else where each host has the same power of two of ranks, one after the other, and hosts are a power of two.
  bool KeepsResult(const Op& op, const Datatype& type, MPI_Aint bytes) const;
  // ... of a reduction to `root`.
  bool KeepsResult(const Op& op, const Datatype& type, MPI_Aint bytes, int root) const;

  // Makers of this rank's schedule, as in algorithms.h.
  void BuildBarrier(Schedule& schedule) const;
  void BuildBroadcast(Schedule& schedule, void* buffer, MPI_Aint count, const Datatype& type, int root) const;
  void BuildReduce(Schedule& schedule, const Reduction& reduction, int root) const;
  void BuildAllReduce(Schedule& schedule, const Reduction& reduction) const;

 private:
  Place InHost() const { return {place_, static_cast<int>(here_.size())}; }
  Place AmongHosts() const { return {host_, static_cast<int>(leaders_.size())}; }
  // Who speaks for each host where the root speaks for its own.
  std::vector<int> SpeakersFor(int root) const;
  // The place in its host of who speaks for this one.
  int SpeakerHere(int root) const;

  std::vector<int> host_of_;  // by rank: the host's number, in the order of first ranks
  std::vector<int> leaders_;  // by host: its first rank
  std::vector<int> here_;     // ranks of this host, ascending
  int host_ = 0, place_ = 0;  // this rank's host; its place in here_
  bool is_even_ = false;      // KeepsResult: the powers of two
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_TWO_LEVELS_H_
