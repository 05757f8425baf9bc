#ifndef BASE_MEMORY_FILE_H_
#define BASE_MEMORY_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/descriptor.h"

namespace weft {

// The memory of another process as a file (proc(5), /proc/PID/mem): the memory that was the process's when the file was opened, and of none that has its
// number later, nor of what it executes then. A few bytes are moved for less than with process_vm_writev(2), which finds the process and asks for
// permission each time; here the kernel asked when the file was opened. Pages of which the process gave up its own right to write are written all the same, as
// by an adapter that has pinned them. Thread safe.
class MemoryFile {
 public:
  // More is moved faster by process_vm_writev(2), which copies once.
  static constexpr size_t kMostBytes = 4096;

  // The file of the process that has this value at this address; one for all who ask while it is open. nullptr: there is none (a policy, no /proc, no
  // descriptor to spare), or what answers to the number is another process.
  static std::shared_ptr<MemoryFile> Open(pid_t pid, uint64_t address, uint64_t value);

  // Whether what is written appears from front to back, as far as with process_vm_writev(2): a program that waits for the last byte has them all. Other
  // processors' memory is copied by a loop of the kernel's that may begin at the end. On arm64 neither is so, since the processor orders no stores.
  static bool WritesInOrder();

  // All `length` bytes, at most kMostBytes: 0, or an errno, and some may have been moved. ESRCH: the process is gone, or executes something else. EFAULT: not
  // all of that is memory.
  int Write(const void* from, uint64_t to, size_t length) const;
  int Read(void* to, uint64_t from, size_t length) const;

 private:
  explicit MemoryFile(Descriptor file) : file_(std::move(file)) {}

  const Descriptor file_;
};

}  // namespace weft

#endif  // BASE_MEMORY_FILE_H_
