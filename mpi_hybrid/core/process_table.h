#ifndef MPI_HYBRID_CORE_PROCESS_TABLE_H_
#define MPI_HYBRID_CORE_PROCESS_TABLE_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/job_secret.h"

namespace weft::mpi {

// A process, by its number in this process's table. The ranks of MPI_COMM_WORLD come first, then processes that joined
// later. A process keeps its number as long as this process knows it. Another process may use another number for it.
using ProcessId = int;

// Identifies a job worldwide: 16 bytes that no other job has. It is public: it is derived from the job's secret and
// does not reveal it.
struct JobId {
  std::array<uint8_t, 16> bytes{};

  auto operator<=>(const JobId&) const = default;
};

// Identifies a process worldwide: the job that it was started in, and its rank in that job's MPI_COMM_WORLD.
struct ProcessName {
  JobId job;
  int32_t rank = 0;

  auto operator<=>(const ProcessName&) const = default;
  std::string ToString() const;  // "rank 3 of job 1a2b3c4d", for messages
};

// A secret that processes share, and by which they authenticate each other. The processes of one job use the secret of
// the job. The processes of two jobs agree on one when the jobs connect.
struct Bond {
  JobId id;  // its name in messages that others can read; the job's own bond has the id of the job
  JobSecret secret;

  static Bond Of(const JobSecret& secret);
};

// The addresses that a process publishes, by kind of wire.
using Cards = std::map<std::string, std::string>;

// The processes that this one knows. The processes of its own job are there from start to end. Others are added when
// jobs connect and are removed when no communicator contains them any more: first their connections are closed; then,
// when no group contains them either, their numbers become free. Any thread may call it.
class ProcessTable {
 public:
  // `rank` and `size` in this process's own job, whose secret is `secret`.
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
  // How Describe names a process; an empty text: as above. To be set before there are other threads.
  void set_describe(std::function<std::string(ProcessId)> describe) { describe_ = std::move(describe); }
  // nullopt: not known, or known to have left.
  std::optional<ProcessId> Find(const ProcessName& name) const;
  // The bond by which this process authenticates itself to `process`.
  Bond BondOf(ProcessId process) const;
  // All bonds that the two processes share, BondOf() first. If two meetings of the same jobs overlap, each process
  // learns of them in an order of its own, so that the two processes may have different first bonds. In the end both
  // know all of them.
  std::vector<Bond> BondsOf(ProcessId process) const;
  // Adds a bond. When there are kMostBonds, the oldest one behind the first is dropped.
  void AddBond(ProcessId process, const Bond& bond);
  static constexpr size_t kMostBonds = 64;

  // Adds a process of another job that is not known yet. It is not held by a communicator yet: see Hold.
  ProcessId Add(const ProcessName& name, const Bond& bond, Cards cards);
  void SetCards(ProcessId process, Cards cards);
  Cards CardsOf(ProcessId process) const;

  // Adds to the number of groups (Name) or communicators (Hold) that contain a process. Groups keep its number in use;
  // communicators keep its number and its connection. Processes of the own job need neither.
  void Name(ProcessId process, int groups);
  void Hold(ProcessId process, int communicators);
  // How many holds communicators have on processes of these jobs, which are not this process's own job.
  int HoldsOf(const std::vector<JobId>& jobs) const;
  // Returns the processes that have lost their last communicator since the last call. The caller closes their
  // connections. They are no longer found by name.
  std::vector<ProcessId> TakeParting();
  bool has_parting() const;
  // Tells the table that the connection of a process of TakeParting is closed. Its number is free once no group
  // contains it.
  void Parted(ProcessId process);
  // Tells the table that the connection of the process ended, as when it called MPI_Finalize. It is no longer found by
  // name, so that a process that comes with this name later counts as new.
  void Left(ProcessId process);

  // --- deaths reported by the launcher ---
  // A process of another job died. It is known, or may become known when another process lists the members of its
  // group.
  void Died(const ProcessName& name);
  static constexpr size_t kMostDead = 65536;  // so many of the latest deaths are remembered
  // Those known processes that died since the last call.
  std::vector<ProcessId> TakeDied();
  bool has_died() const { return has_died_.load(std::memory_order_relaxed); }

  // --- ports ---
  // Opens a port: processes that are not known yet may connect with this bond.
  void OpenDoor(const Bond& bond);
  // Closes the port. The last kMostClosed closed bonds still admit a process, which is then told that the port is
  // closed.
  void CloseDoor(const JobId& bond);
  static constexpr size_t kMostClosed = 1024;
  // The bond with the id `bond` for an incoming process that claims the name `name`: a bond that it shares with this
  // process, or that of an open port. nullopt: there is none.
  std::optional<Bond> BondToEnter(const JobId& bond, const ProcessName& name) const;
  // Returns the number of an incoming process after it has been authenticated. A process that came through a port and
  // is not known yet is added. A known process gets one bond more; this happens when two processes connect to each
  // other's ports at the same time.
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

  mutable std::mutex mutex_;  // guards all members below, except the first two, which Start sets
  ProcessId self_ = 0;
  int world_size_ = std::numeric_limits<int>::max();  // until Start: all numbers are ranks
  std::optional<Bond> job_;
  std::function<std::string(ProcessId)> describe_;
  std::vector<Entry> entries_;  // by number; the own job's processes have no cards here
  std::vector<ProcessId> free_;
  std::map<ProcessName, ProcessId> by_name_;  // of other jobs
  std::vector<ProcessId> parting_;
  std::set<ProcessName> dead_;
  std::deque<ProcessName> dead_in_order_;  // the oldest first
  std::vector<ProcessId> died_;            // not yet returned by TakeDied
  std::atomic<bool> has_died_{false};
  std::map<JobId, Bond> doors_;
  std::deque<JobId> closed_doors_;  // oldest first
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_PROCESS_TABLE_H_
