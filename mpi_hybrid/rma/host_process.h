#ifndef MPI_HYBRID_RMA_HOST_PROCESS_H_
#define MPI_HYBRID_RMA_HOST_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/descriptor.h"

namespace weft::mpi::rma {

// Another process of this host, and no later one that gets its number: a descriptor names it (pidfd_open(2)), one for all windows of
// this process. Without a descriptor to spare the number and the time at which the process started do.
class HostProcess {
 public:
  // The process that has the number now. If it has not ended after the caller found that the number belongs to the process that is
  // meant, it is that one. With the library's lock.
  static std::shared_ptr<HostProcess> Of(pid_t pid);
  // Never shared with other callers; without a descriptor if `names_by_descriptor` is false. For tests.
  static std::shared_ptr<HostProcess> ForTesting(pid_t pid, bool names_by_descriptor);

  // Asks the system, until it says yes: also when the parent has not noticed yet. False when it cannot be known now. Any thread.
  bool HasEnded();
  pid_t pid() const { return pid_; }

 private:
  HostProcess(pid_t pid, bool names_by_descriptor);
  bool LooksEnded() const;

  const pid_t pid_;
  Descriptor pidfd_;
  uint64_t started_ = 0;  // without a descriptor: in clock ticks since the system did; 0: not known
  std::atomic<bool> ended_{false};
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_PROCESS_H_
