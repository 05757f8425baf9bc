#ifndef WIRES_HOST_MEETING_PEER_PROCESS_H_
#define WIRES_HOST_MEETING_PEER_PROCESS_H_

#include <sys/types.h>

#include "base/descriptor.h"
#include "wires/host/meeting/shared_memory.h"

namespace weft::host {

// Whether the peer's process can still do anything, for calls that have to wait for the peer. The process is identified
// by a descriptor (pidfd_open(2)). The peer's probe confirms that the pid was still the peer's when that was opened.
// One thread at a time.
class PeerProcess {
 public:
  // `pid` 0: the process has no pid in our name space, and its end cannot be detected.
  PeerProcess(pid_t pid, const Probe& probe);

  // Whether it has ended (perhaps not reaped yet) or executes another program: none of its threads accesses our memory
  // any more.
  bool IsGone() const;

 private:
  const pid_t pid_;
  const Probe& probe_;
  Descriptor process_;  // none: an old kernel, or a filter
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_PEER_PROCESS_H_
