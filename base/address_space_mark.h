#ifndef BASE_ADDRESS_SPACE_MARK_H_
#define BASE_ADDRESS_SPACE_MARK_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

// Returns the address of a page of this process that no other process has mapped: the mark of its address space. The
// address is random, and far from where the kernel places mappings by itself. The page is mapped neither in a child of
// fork(2) nor after execve(2).
//
// process_vm_writev(2) and process_vm_readv(2) find a process by its pid, which may belong to another process by the
// time of the call. The kernel copies the pieces of one call in order, within one address space, and stops at the first
// piece that is not mapped. So a call whose first piece is the mark of the intended process copies that process's
// memory or nothing. The content of the page has no meaning: any process may read and write its first 8 bytes.
//
// Returns 0 if there is no memory for the page. Thread safe; a child of fork(2) gets a mark of its own.
uint64_t AddressSpaceMark();
inline constexpr uint64_t kMarkBytes = 8;

// The memory of another process. Each copy begins with the mark of that process, so it never touches a later process
// with the same pid, or a program that the process executes later.
class MarkedProcess {
 public:
  static constexpr size_t kMostPieces = 64;  // pieces in each list

  MarkedProcess() = default;
  // `mark`: the value that the other process reports as its AddressSpaceMark(); 0: nothing is copied.
  MarkedProcess(pid_t pid, uint64_t mark) : pid_(pid), mark_(mark) {}

  pid_t pid() const { return pid_; }
  uint64_t mark() const { return mark_; }

  // process_vm_readv(2) and process_vm_writev(2) of at least one byte. Returns the number of bytes copied; fewer than
  // asked for if the memory behind them is not mapped. If no byte was copied, returns -1 and sets errno. ESRCH: the
  // process is gone. EFAULT: memory of either side is not mapped. EPERM: not permitted.
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
