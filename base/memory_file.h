#ifndef BASE_MEMORY_FILE_H_
#define BASE_MEMORY_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/address_space_mark.h"
#include "base/descriptor.h"

namespace weft {

// The memory of another process as a file (proc(5), /proc/PID/mem). The file stands for the memory that the process had
// when the file was opened. It never stands for that of a later process with the same pid, or of a program that the
// process executes later. A few bytes are cheaper to move this way than with process_vm_writev(2), which looks up the
// process and checks permission in each call; here the kernel checked when the file was opened. Pages that the process
// itself may no longer write are written too, as by an adapter that has pinned them. Thread safe.
class MemoryFile {
 public:
  // For more than this, process_vm_writev(2) is faster, because it copies once.
  static constexpr size_t kMostBytes = 4096;

  // Opens the memory of the process `pid`, which must have `value` at `address`. All callers share one file while it is
  // open. nullptr: the file cannot be opened (a security policy, no /proc, no spare descriptor), or the pid belongs to
  // another process.
  static std::shared_ptr<MemoryFile> Open(pid_t pid, uint64_t address, uint64_t value);
  // The same, of the process that has that mark mapped.
  static std::shared_ptr<MemoryFile> Open(const MarkedProcess& process);

  // Whether written bytes become visible from front to back, as with process_vm_writev(2), so that a program that polls
  // the last byte then has all of them. True on x86-64 processors with fast short REP MOVSB, which the kernel then
  // uses. On others the kernel copies with a loop that may begin at the end. On arm64 neither call keeps the order,
  // since the processor does not order stores.
  static bool WritesInOrder();

  // Copies all `length` bytes, at most kMostBytes. Returns 0 or an errno; after an error, some bytes may have been
  // copied. ESRCH: the process is gone or executed another program. EFAULT: part of the range is not mapped.
  int Write(const void* from, uint64_t to, size_t length) const;
  int Read(void* to, uint64_t from, size_t length) const;

 private:
  template <typename IsOfProcess>
  static std::shared_ptr<MemoryFile> OpenIf(pid_t pid, IsOfProcess is_of_process);
  explicit MemoryFile(Descriptor file) : file_(std::move(file)) {}

  const Descriptor file_;
};

}  // namespace weft

#endif  // BASE_MEMORY_FILE_H_
