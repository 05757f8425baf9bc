#ifndef BASE_PROGRAM_MEMORY_H_
#define BASE_PROGRAM_MEMORY_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/copy.h"
#include "base/dma_scope.h"

// Copies bytes from and to registered memory of the program. An adapter pins the pages of registered memory; Weft does
// not, and a program may unmap them before it deregisters them. There are two cases:
//
// - On a thread of the program, in a call that it made (post, poll), a fault is the program's own, like a fault of one
//   of its stores. Bytes are copied at the speed of memcpy.
// - On a thread of Weft (ThreadOfOurs), and wherever a queue pair ends, the kernel copies the bytes and reports if they
//   are not mapped. This costs one system call, for many pieces hardly more than for one. Checking before an ordinary
//   copy would not do: another thread of the program may unmap the memory in between.
namespace weft {

namespace internal {
extern constinit thread_local bool g_thread_of_ours [[gnu::tls_model("initial-exec")]];
}  // namespace internal

// Marks the calling thread as one of Weft's.
inline void SetThreadOfOurs() { internal::g_thread_of_ours = true; }
inline bool ThreadOfOurs() { return internal::g_thread_of_ours; }

// Copies through the kernel. Returns false if not all bytes of the program are mapped (or writable); some may have been
// copied. If a system call filter forbids process_vm_readv(2), the bytes go through a pipe.
[[nodiscard]] bool ReadProgramMemory(void* to, const void* from, size_t bytes);
[[nodiscard]] bool WriteProgramMemory(void* to, const void* from, size_t bytes);
// Copies the pieces of `from`, at most IOV_MAX, one behind the other to `to`, with one system call. Returns how many
// pieces, from the first on, were copied completely.
[[nodiscard]] size_t GatherProgramMemory(void* to, std::span<const iovec> from);
// Copy between pieces of the program's memory and pieces of Weft's, as many bytes as the shorter side has.
[[nodiscard]] bool ScatterToProgramMemory(std::span<const iovec> to, std::span<const iovec> from);
[[nodiscard]] bool GatherFromProgramMemory(std::span<const iovec> to, std::span<const iovec> from);
// Whether all of these bytes are mapped at this moment. Checks each page.
[[nodiscard]] bool IsProgramMemory(std::span<const iovec> pieces);
// Whether every address of the range is mapped, perhaps without permission to read or write. One system call of 0.15 us
// for any length.
[[nodiscard]] bool IsMapped(const void* from, size_t bytes);

// CopyFromProgram() and CopyToProgram() copy through the kernel on a thread of Weft. On other threads they always
// return true.
[[nodiscard]] inline bool CopyFromProgram(void* to, const void* from, size_t bytes) {
  if (ThreadOfOurs()) [[unlikely]] return ReadProgramMemory(to, from, bytes);
  const DmaScope dma;
  CopyBytes(to, from, bytes);
  return true;
}
// Programs such as perftest poll the last byte of an RDMA Write. InfiniBand promises no order of its bytes
// (ibv_query_qp_data_in_order() is 0), but most adapters keep one. x86-64 makes stores visible in the order in which
// memcpy makes them, which is nearly that of the addresses. On other processors a later store may become visible first.
// So the last word is stored with release, and a program that polls with a barrier (udma_from_device_barrier()) sees
// the rest too. Bytes that the kernel copies (WriteProgramMemory(), a socket, a peer on this host) have no such order:
// it would cost a second system call.
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
