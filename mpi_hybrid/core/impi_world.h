#ifndef MPI_HYBRID_CORE_IMPI_WORLD_H_
#define MPI_HYBRID_CORE_IMPI_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "impi/job/job.h"
#include "impi/job/ranks.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/process_table.h"

namespace weft::mpi {

// A job of several MPI implementations (impi/) of which this process's own job is one client: its processes by the numbers that they have in this process's
// table. Processes of other clients stand there right behind the own job's, and stay until the end. They are *foreign*: what is sent to them goes by IMPI's
// protocol. Does not change, but for next_context().
class ImpiWorld {
 public:
  // The highest context id of the protocol (IMPI_MAX_CID). A communicator has two: one for messages, and behind it one for collectives.
  static constexpr uint64_t kMostContext = 18446744073709551600u;

  // `own`: the processes of this client, in the order of `job`, by their numbers in the table. `lam_clients`: bit i: client i is LAM/MPI. To be made before any
  // process of another job is added to the table, which it outlives.
  ImpiWorld(impi::Job job, std::vector<ProcessId> own, ProcessTable& table, uint32_t lam_clients = 0);
  ImpiWorld(const ImpiWorld&) = delete;
  ImpiWorld& operator=(const ImpiWorld&) = delete;

  const impi::Job& job() const { return job_; }
  impi::WorldRank self() const { return RankOf(self_); }
  // By rank in the common MPI_COMM_WORLD.
  const std::vector<ProcessId>& processes() const { return process_of_; }
  ProcessId ProcessOf(impi::WorldRank rank) const { return process_of_[static_cast<size_t>(rank.value)]; }
  bool IsMember(ProcessId process) const { return process >= 0 && process < end_; }
  impi::WorldRank RankOf(ProcessId process) const { return rank_of_[static_cast<size_t>(process)]; }  // of a member
  // Of a member.
  impi::ClientRank ClientOf(ProcessId process) const { return job_.host(job_.process(RankOf(process)).host).client; }
  // impi/message/departures.h
  bool IsLam(impi::ClientRank client) const { return (lam_clients_ >> client.value & 1) != 0; }
  bool HasLam() const { return lam_clients_ != 0; }
  // Processes of other clients on this machine, and the agents there, one for each host of the job, which carry messages while ranks wait for them; a
  // process that is alone on its host does that itself. A machine is known by the address that its hosts announced.
  int OthersOnMachine() const;
  bool IsForeign(ProcessId process) const { return process >= first_foreign_ && process < end_; }
  bool AnyForeign(std::span<const ProcessId> processes) const {
    return std::any_of(processes.begin(), processes.end(), [this](ProcessId process) { return IsForeign(process); });
  }

  // Higher than all contexts of the protocol that this process has seen (IMPI_max_cid of section 4.4, and odd as there). Guarded by the library's lock.
  uint64_t seen_context() const { return seen_context_; }
  // All processes that make a communicator together have found `highest` as the maximum of theirs. The context of the new communicator, or why there is none.
  Error TakeContext(uint64_t highest, uint64_t* context);

 private:
  const impi::Job job_;
  const ProcessId self_;
  const uint32_t lam_clients_;
  ProcessId first_foreign_ = 0, end_ = 0;
  std::vector<ProcessId> process_of_;     // by world rank
  std::vector<impi::WorldRank> rank_of_;  // by process
  uint64_t seen_context_ = 1;             // 0 and 1 belong to MPI_COMM_WORLD
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_IMPI_WORLD_H_
