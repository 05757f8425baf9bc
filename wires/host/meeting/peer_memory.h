#ifndef WIRES_HOST_MEETING_PEER_MEMORY_H_
#define WIRES_HOST_MEETING_PEER_MEMORY_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "wires/host/meeting/shared_memory.h"
#include "wires/host/ring/layout.h"

namespace weft::host {

// The memory of another process, as the kernel lets us read it: process_vm_readv(2), which asks for what ptrace(2) does.
class PeerMemory {
 public:
  explicit PeerMemory(pid_t pid) : pid_(pid) {}

  // Lets that process read our memory where a policy wants that it is named (Yama's ptrace_scope 1, prctl(2), PR_SET_PTRACER). A process can name
  // one: the first peer is, others get what they read through the ring.
  static void Admit(pid_t peer);
  static void ShowProbe(Probe& probe);  // ours

  // Tries it, by the peer's probe. False: it cannot be read (another name space, a policy, a filter), and Read() is not to be called.
  bool TryProbe(const Probe& probe);
  // The `length` bytes of `from` into those of `to`: 0, or an errno. ESRCH: the process is not that whose probe was read.
  int Read(std::span<const iovec> to, std::span<const Piece> from, size_t length) const;

  // For tests: TryProbe() says no from now on.
  static void ForbidForTesting(bool forbidden);

 private:
  pid_t pid_;
  uint64_t probe_address_ = 0, probe_value_ = 0;
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_PEER_MEMORY_H_
