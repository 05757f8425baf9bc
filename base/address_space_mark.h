#ifndef BASE_ADDRESS_SPACE_MARK_H_
#define BASE_ADDRESS_SPACE_MARK_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

// The address of eight bytes of this process's memory at which no other process has any: a page of its own, which is where chance put it, far
// from where the kernel puts memory by itself, and which is neither there in a child of fork(2) nor after execve(2).
//
// process_vm_writev(2) and process_vm_readv(2) find a process by its number, which may be another process's by the time of the call. The kernel
// copies the pieces of one call in their order and within one address space, and stops at the first that is not mapped. So a call whose first
// piece is the mark of the process that is meant copies from and to the memory of that process, or nothing. The bytes mean nothing: anybody may
// read and write them.
//
// 0: there is none, for want of memory. Thread safe; a child of fork(2) gets one of its own.
uint64_t AddressSpaceMark();
inline constexpr uint64_t kMarkBytes = 8;

// Another process's memory, and never that of a later process that has its number, or of what it executes then: each copy begins with its mark.
class MarkedProcess {
 public:
  static constexpr size_t kMostPieces = 64;  // of each list

  MarkedProcess() = default;
  // `mark`: what that process says that its AddressSpaceMark() is; 0: no copy.
  MarkedProcess(pid_t pid, uint64_t mark) : pid_(pid), mark_(mark) {}

  pid_t pid() const { return pid_; }
  uint64_t mark() const { return mark_; }

  // process_vm_readv(2) and process_vm_writev(2), of at least a byte. The bytes that were copied, perhaps fewer: what follows them is not mapped. -1 and
  // errno: none were, ESRCH: the process is gone; EFAULT: memory of either side is not mapped; EPERM.
  ssize_t Read(std::span<const iovec> here, std::span<const iovec> there) const { return Copy(process_vm_readv, here, there); }
  ssize_t Write(std::span<const iovec> here, std::span<const iovec> there) const { return Copy(process_vm_writev, here, there); }

 private:
  ssize_t Copy(decltype(process_vm_readv)* call, std::span<const iovec> here, std::span<const iovec> there) const;
  int ErrorOfCall(int error) const;

  pid_t pid_ = 0;
  uint64_t mark_ = 0;
};

}  // namespace weft

#endif  // BASE_ADDRESS_SPACE_MARK_H_
