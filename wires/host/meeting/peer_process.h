#ifndef WIRES_HOST_MEETING_PEER_PROCESS_H_
#define WIRES_HOST_MEETING_PEER_PROCESS_H_

#include <sys/types.h>

#include "base/descriptor.h"
#include "wires/host/meeting/shared_memory.h"

namespace weft::host {

// Whether the process at the other end can still do anything. A call that has to wait for the peer makes it: a process is named by a descriptor (pidfd_open(2)),
// and the peer's probe says that the number was still the peer's when that was opened. One thread at a time.
class PeerProcess {
 public:
  // `pid` 0: it has no number in our name space, and nobody can tell.
  PeerProcess(pid_t pid, const Probe& probe);

  // It has ended, also if nobody has reaped it, or executes something else: none of its threads reaches our memory any more.
  bool IsGone() const;

 private:
  const pid_t pid_;
  const Probe& probe_;
  Descriptor process_;  // none: an old kernel, or a filter
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_PEER_PROCESS_H_
