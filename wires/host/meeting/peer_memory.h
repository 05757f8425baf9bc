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

// The memory of another process, as far as the kernel allows access: by process_vm_readv(2) and process_vm_writev(2),
// which need the permissions of ptrace(2); and, for a few bytes in one piece, by the process's MemoryFile, which is
// opened when it is first useful.
class PeerMemory {
 public:
  explicit PeerMemory(pid_t pid) : pid_(pid) {}

  // Allows that process to access our memory if a policy requires that it is named (Yama's ptrace_scope 1, prctl(2),
  // PR_SET_PTRACER). A process can name only one: the first peer. Other peers get the data through the ring.
  static void Admit(pid_t peer);
  static void ShowProbe(Probe& probe);  // our probe

  // Tests access by the peer's probe. Returns false if it cannot be read (another name space, a policy, a filter);
  // Read() must not be called then.
  bool TryProbe(const Probe& probe);
  // Copies `length` bytes from `from` to `to`. Returns 0 or an errno. ESRCH: it is no longer the process whose probe
  // was read.
  int Read(std::span<const iovec> to, std::span<const Piece> from, size_t length);

  // Call after TryProbe() returned true. Returns false if the memory can be read, but not written.
  bool TryWriting();
  // Copies all bytes of `from`; `to` has as many. Returns 0 or an errno; after an error some may have been written. It
  // was verified within the last kTrust that the pid still belongs to that process and that the kernel still allows
  // access: a pid that is released is reused only after all others.
  int Write(std::span<const iovec> from, const Piece& to);

  // For tests: from now on no process allows another one to access its memory.
  static void ForbidForTesting(bool forbidden);

 private:
  static constexpr std::chrono::microseconds kTrust{100};

  int ReadBesideProbe(std::span<const iovec> to, std::span<const Piece> from, size_t length) const;
  int WriteByCall(std::span<const iovec> from, const Piece& to) const;
  const MemoryFile* FileFor(size_t length);

  pid_t pid_;
  std::chrono::steady_clock::time_point seen_{};  // last check that it is the same process, and accessible
  uint64_t probe_address_ = 0, probe_value_ = 0;
  std::shared_ptr<MemoryFile> file_;
  bool file_tried_ = false;
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_PEER_MEMORY_H_
