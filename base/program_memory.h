#ifndef BASE_PROGRAM_MEMORY_H_
#define BASE_PROGRAM_MEMORY_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/copy.h"
#include "base/dma_scope.h"

// Moving bytes from and to registered memory of the program. An adapter has pinned its pages; Weft has not, and a program may have unmapped them without
// deregistering them first. Two cases:
//
// - on a thread of the program's, in a call of its own (it posts, it polls), a fault is the program's, as it would be for one of its stores, and bytes move
//   as fast as memcpy does;
// - on a thread of Weft's (ThreadOfOurs), and wherever a queue pair ends, the kernel moves them, and says when they are not there. That costs a system call,
//   for many pieces hardly more than for one. A look before an ordinary copy would not do: another thread of the program's may unmap the memory between them.
namespace weft {

namespace internal {
extern constinit thread_local bool g_thread_of_ours [[gnu::tls_model("initial-exec")]];
}  // namespace internal

// This thread is Weft's own from now on.
inline void SetThreadOfOurs() { internal::g_thread_of_ours = true; }
inline bool ThreadOfOurs() { return internal::g_thread_of_ours; }

// The kernel moves them. False: not all of the program's bytes are there (or may be written), and some may have been moved. Where a filter of system calls
// forbids process_vm_readv(2), they go through a pipe.
[[nodiscard]] bool ReadProgramMemory(void* to, const void* from, size_t bytes);
[[nodiscard]] bool WriteProgramMemory(void* to, const void* from, size_t bytes);
// The pieces of `from`, one behind the other, to `to`; at most IOV_MAX of them, with one system call. How many of them, from the first on, were there as a whole.
[[nodiscard]] size_t GatherProgramMemory(void* to, std::span<const iovec> from);
// As many bytes of `from`, which is ours, as `to` has.
[[nodiscard]] bool ScatterToProgramMemory(std::span<const iovec> to, std::span<const iovec> from);
// All of these bytes are there, at this moment: looks at each page.
[[nodiscard]] bool IsProgramMemory(std::span<const iovec> pieces);
// There is memory at all of these addresses, though perhaps none that may be read or written. One system call of 0.15 us, whatever their number.
[[nodiscard]] bool IsMapped(const void* from, size_t bytes);

// The same on a thread of ours; else always true.
[[nodiscard]] inline bool CopyFromProgram(void* to, const void* from, size_t bytes) {
  if (ThreadOfOurs()) [[unlikely]] return ReadProgramMemory(to, from, bytes);
  const DmaScope dma;
  CopyBytes(to, from, bytes);
  return true;
}
// Programs poll the last byte of an RDMA Write, as perftest does. InfiniBand promises no order of its bytes (ibv_query_qp_data_in_order() is 0), but
// adapters mostly keep one. x86-64 makes stores visible in the order in which memcpy has them, which is nearly that of the addresses. Elsewhere a later
// store may be seen first; so the last word is stored with release, and a program that polls with a barrier (udma_from_device_barrier()) has the rest.
// What the kernel copies there (WriteProgramMemory(), a socket, a peer on this host) has no such order: it would cost a second system call.
[[nodiscard]] inline bool CopyToProgram(void* to, const void* from, size_t bytes) {
  if (ThreadOfOurs()) [[unlikely]] return WriteProgramMemory(to, from, bytes);
  const DmaScope dma;
#if defined(__x86_64__)
  CopyBytes(to, from, bytes);
#else
  CopyEndLast(to, from, bytes);
#endif
  return true;
}

}  // namespace weft

#endif  // BASE_PROGRAM_MEMORY_H_
