#ifndef WIRES_HOST_MEETING_PEER_MEMORY_H_
#define WIRES_HOST_MEETING_PEER_MEMORY_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/memory_file.h"
#include "wires/host/meeting/shared_memory.h"
#include "wires/host/ring/layout.h"

namespace weft::host {

// The memory of another process, as the kernel lets us reach it: process_vm_readv(2) and process_vm_writev(2), which ask for what ptrace(2) does, and for a
// few bytes in one piece the process's MemoryFile, which is opened when it is first of use.
class PeerMemory {
 public:
  explicit PeerMemory(pid_t pid) : pid_(pid) {}

  // Lets that process reach our memory where a policy wants that it is named (Yama's ptrace_scope 1, prctl(2), PR_SET_PTRACER). A process can name
  // one: the first peer is, others get what they read through the ring.
  static void Admit(pid_t peer);
  static void ShowProbe(Probe& probe);  // ours

  // Tries it, by the peer's probe. False: it cannot be read (another name space, a policy, a filter), and Read() is not to be called.
  bool TryProbe(const Probe& probe);
  // The `length` bytes of `from` into those of `to`: 0, or an errno. ESRCH: the process is not that whose probe was read.
  int Read(std::span<const iovec> to, std::span<const Piece> from, size_t length);

  // After TryProbe(), which says yes. False: it can be read, but not be written to.
  bool TryWriting();
  // All bytes of `from`, as many as `to` has: 0, or an errno, and some may have been written. Whether the number is still that process's, and the kernel
  // still lets us, was seen within the last kTrust: a number that is given up comes back once all others had their turn.
  int Write(std::span<const iovec> from, const Piece& to);

  // For tests: no process lets another one reach its memory from now on.
  static void ForbidForTesting(bool forbidden);

 private:
  static constexpr std::chrono::microseconds kTrust{100};

  int ReadBesideProbe(std::span<const iovec> to, std::span<const Piece> from, size_t length) const;
  int WriteByCall(std::span<const iovec> from, const Piece& to) const;
  const MemoryFile* FileFor(size_t length);

  pid_t pid_;
  std::chrono::steady_clock::time_point seen_{};  // that it is the same process, which may be reached
  uint64_t probe_address_ = 0, probe_value_ = 0;
  std::shared_ptr<MemoryFile> file_;
  bool file_tried_ = false;
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_PEER_MEMORY_H_
