#ifndef MPI_HYBRID_HOST_AFFINITY_TABLE_H_
#define MPI_HYBRID_HOST_AFFINITY_TABLE_H_

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <span>

namespace weft::mpi::host {

// A set of processors, and how many processes may run on exactly these.
struct Affinity {
  enum State : uint32_t { kFree = 0, kBeingWritten = 1, kWritten = 2 };

  // kWritten publishes `processors`: stored with release by the process that wrote them (Add), loaded with acquire by
  // the others
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> processes;  // publishes nothing
  cpu_set_t processors;
};

// Which processes of a host may run on which processors, in memory that they share and that was zero at first: a few
// entries for any number of processes, since most have the same set. Asking the kernel would take two calls for each
// process, one of which looks at all of them. Hints: the kernel may move a process at any time.
class AffinityTable {
 public:
  // One entry for each process suffices.
  explicit AffinityTable(std::span<Affinity> entries) : entries_(entries) {}

  void Add(const cpu_set_t& processors);
  // Number of the added processes that may run on none of `processors`.
  int ElsewhereThan(const cpu_set_t& processors) const;

 private:
  std::span<Affinity> entries_;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_AFFINITY_TABLE_H_
