#ifndef MPI_HYBRID_HOST_PROCESS_H_
#define MPI_HYBRID_HOST_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/descriptor.h"

namespace weft::mpi::host {

// Another process of this host, but no later one with the same pid. It is identified by a descriptor (pidfd_open(2)),
// one for all who watch it in this process. If no descriptor is available, the pid and the start time of the process
// identify it.
class Process {
 public:
  // Returns the process that has the pid now. If the caller knew that the pid belonged to the intended process and that
  // process has not ended since, it is that process. Call with the library's lock held.
  static std::shared_ptr<Process> Of(pid_t pid);
  // Never shared with other callers. No descriptor is used if `names_by_descriptor` is false. For tests.
  static std::shared_ptr<Process> ForTesting(pid_t pid, bool names_by_descriptor);

  // Asks the system until the answer is once yes. Also true while the parent has not reaped the process. False if it
  // cannot be determined now. Any thread may call it.
  bool HasEnded();
  pid_t pid() const { return pid_; }
  // Readable when it has ended (pidfd_open(2)); owned by this object. -1: there is none.
  int descriptor() const { return pidfd_.get(); }

 private:
  Process(pid_t pid, bool names_by_descriptor);
  bool LooksEnded() const;

  const pid_t pid_;
  Descriptor pidfd_;
  uint64_t started_ = 0;  // without a descriptor: start time in clock ticks since the system started; 0: not known
  std::atomic<bool> ended_{false};
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_PROCESS_H_
