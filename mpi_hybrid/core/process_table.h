#ifndef MPI_HYBRID_CORE_PROCESS_TABLE_H_
#define MPI_HYBRID_CORE_PROCESS_TABLE_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/job_secret.h"

namespace weft::mpi {

// A process that we may talk to, by its number in this process's table: ranks of MPI_COMM_WORLD first, processes that
// joined later behind. The same process has the same number for as long as it is known; another process has another
// number for it.
using ProcessId = int;

// A job in the world: 16 bytes that no other job has. Public: it follows from the job's secret and tells nothing of it.
struct JobId {
  std::array<uint8_t, 16> bytes{};

  auto operator<=>(const JobId&) const = default;
};

// A process in the world: the job that it was started in, and its rank in that job's MPI_COMM_WORLD.
struct ProcessName {
  JobId job;
  int32_t rank = 0;

  auto operator<=>(const ProcessName&) const = default;
  std::string ToString() const;  // "rank 3 of job 1a2b3c4d", for messages
};

// A secret that processes have in common, and by which they prove themselves to one another. Those of one job have the
// job's; those of two jobs agree on one when the jobs connect.
struct Bond {
  JobId id;  // what to call it where others listen; the job's own has the job's id
  JobSecret secret;

  static Bond Of(const JobSecret& secret);
};

// What a process publishes of itself: where it can be reached, by kind of wire.
using Cards = std::map<std::string, std::string>;

// The processes that this one knows. Those of its own job are there from the start to the end. Others come when jobs
// connect, and go when no communicator has them any more: first their connections are closed, then, when no group
// names them either, their numbers are free for others. Any thread may call it.
class ProcessTable {
 public:
  // `rank` and `size` of the own job, whose secret is `secret`.
  void Start(const JobSecret& secret, int rank, int size);

  ProcessId self() const { return self_; }
  int world_size() const { return world_size_; }
  bool IsOfWorld(ProcessId process) const { return process >= 0 && process < world_size_; }
  // One more than the highest number in use.
  int limit() const;
  ProcessName own_name() const { return NameOf(self_); }
  ProcessName NameOf(ProcessId process) const;
  // "rank 3 of MPI_COMM_WORLD", or the name.
  std::string Describe(ProcessId process) const;
  // nullopt: not known, or known as one that left.
  std::optional<ProcessId> Find(const ProcessName& name) const;
  // By which this process proves itself to that one.
  Bond BondOf(ProcessId process) const;
  // All that the two have in common, BondOf() first. Where two meetings of the same jobs overlap each process learns of them in an order of its own, so
  // that the first of one need not be the other's; both know all in the end.
  std::vector<Bond> BondsOf(ProcessId process) const;
  // One more. Of those behind the first the oldest goes when there are kMostBonds.
  void AddBond(ProcessId process, const Bond& bond);
  static constexpr size_t kMostBonds = 64;

  // Makes a process known. It is not yet; it is of another job. Nobody holds it: see Hold.
  ProcessId Add(const ProcessName& name, const Bond& bond, Cards cards);
  void SetCards(ProcessId process, Cards cards);
  Cards CardsOf(ProcessId process) const;

  // Groups that name a process keep its number; communicators keep it connected, too. Those of the own job need neither.
  void Name(ProcessId process, int groups);
  void Hold(ProcessId process, int communicators);
  // How often communicators hold processes of these jobs, which are others.
  int HoldsOf(const std::vector<JobId>& jobs) const;
  // Processes that no communicator holds any more, since the last call: their connections are to be closed. They are not
  // found by name any more.
  std::vector<ProcessId> TakeParting();
  bool has_parting() const;
  // ... and are now. Its number is free once no group names it.
  void Parted(ProcessId process);
  // Its connection ended, as when it called MPI_Finalize: it is not found by name any more, so that who comes by that
  // name is taken for new.
  void Left(ProcessId process);

  // --- deaths that the launcher told ---
  // A process of another job, which is known or may become so: where another says who is in its group.
  void Died(const ProcessName& name);
  static constexpr size_t kMostDead = 65536;  // are remembered, the last
  // Those that are known, since the last call.
  std::vector<ProcessId> TakeDied();
  bool has_died() const { return has_died_.load(std::memory_order_relaxed); }

  // --- ports ---
  // A bond by which processes that are not known yet may come.
  void OpenDoor(const Bond& bond);
  // They still may, as long as there were not kMostClosed more: to be told that the port is closed.
  void CloseDoor(const JobId& bond);
  static constexpr size_t kMostClosed = 1024;
  // The bond of that name by which somebody comes who says he is `name`: one that he and this process have in
  // common, or an open door. nullopt: none.
  std::optional<Bond> BondToEnter(const JobId& bond, const ProcessName& name) const;
  // After his proof: his number. He is added if he came by a door and is not known; who is known, as one to whose port this process comes at the
  // same time, has one bond more.
  ProcessId Enter(const Bond& bond, const ProcessName& name);

 private:
  struct Entry {
    ProcessName name;
    std::vector<Bond> bonds;  // at least one
    Cards cards;
    int groups = 0, communicators = 0;
    bool in_use = false;
    bool parting = false;  // no communicator holds it
    bool parted = true;    // it has no connection
  };

  Entry& At(ProcessId process) { return entries_.at(static_cast<size_t>(process - world_size_)); }
  const Entry& At(ProcessId process) const { return entries_.at(static_cast<size_t>(process - world_size_)); }
  static const Bond* FindBond(const Entry& entry, const JobId& id);
  static void AddBond(Entry& entry, const Bond& bond);
  std::optional<ProcessId> FindLocked(const ProcessName& name) const;
  ProcessId AddLocked(const ProcessName& name, const Bond& bond, Cards cards);
  void ForgetName(ProcessId process);
  void Part(ProcessId process);
  void FreeIfUnused(ProcessId process);
  void NoteDied(ProcessId process);

  mutable std::mutex mutex_;  // guards what follows but for the first two, which Start sets
  ProcessId self_ = 0;
  int world_size_ = std::numeric_limits<int>::max();  // until Start: all numbers are ranks
  std::optional<Bond> job_;
  std::vector<Entry> entries_;  // by number; those of the own job have no cards here
  std::vector<ProcessId> free_;
  std::map<ProcessName, ProcessId> by_name_;  // of other jobs
  std::vector<ProcessId> parting_;
  std::set<ProcessName> dead_;
  std::deque<ProcessName> dead_in_order_;  // the oldest first
  std::vector<ProcessId> died_;            // that nobody took yet
  std::atomic<bool> has_died_{false};
  std::map<JobId, Bond> doors_;
  std::deque<JobId> closed_doors_;  // oldest first
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_PROCESS_TABLE_H_
