#ifndef BASE_ADDRESS_SPACE_MARK_H_
#define BASE_ADDRESS_SPACE_MARK_H_

#include <cstdint>

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

}  // namespace weft

#endif  // BASE_ADDRESS_SPACE_MARK_H_
