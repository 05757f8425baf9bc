#ifndef WIRES_HOST_MEETING_MEETING_POINT_H_
#define WIRES_HOST_MEETING_MEETING_POINT_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "llp/weft_trailer.h"
#include "wires/host/meeting/shared_memory.h"

namespace weft::host {

using llp::Invitation;
using Nonce = decltype(Invitation::nonce);

// Two processes that met: proven to run on one kernel, in one network name space, for one user.
struct Met {
  std::unique_ptr<SharedMemory> memory;
  Descriptor bell;  // a connected socket: a byte wakes the other one
  pid_t peer = 0;   // its number in our name space; 0: it has none
};

// Where the processes of one host meet that already speak over TCP, and what proves that they are on one host: an abstract Unix socket, which
// only processes of one network name space reach. Each side has the kernel's word for whom the other one runs (SO_PEERCRED), and refuses anybody but its
// own user; the nonce, which went over the TCP connection, ties the meeting to that connection. The responder visits before it answers, so that there is
// nothing to wait for: what is not there when the answer comes never will be. Thread safe; nothing blocks.
class MeetingPoint {
 public:
  MeetingPoint() = default;
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  // Initiator. nullopt: there is no room for a socket, or it is forbidden.
  std::optional<Invitation> Invite();
  // Whoever came with that invitation, which is then used up. nullptr: nobody.
  std::unique_ptr<Met> Collect(const Invitation& invitation);
  void Withdraw(const Invitation& invitation);

  // Responder: goes there. nullptr: nobody is there, or somebody of another user, or there is no room (descriptors, memory).
  static std::unique_ptr<Met> Visit(const Invitation& invitation);

 private:
  static constexpr size_t kMostSilent = 64;

  bool Open();          // with the mutex
  void TakeVisitors();  // with the mutex
  // False: nothing came of it yet.
  bool Hear(Descriptor& visitor);

  std::mutex mutex_;  // guards what follows
  Descriptor socket_;
  uint64_t point_ = 0;
  std::map<Nonce, std::unique_ptr<Met>> invited_;  // null: did not come yet
  std::vector<Descriptor> silent_;                 // visitors of our user that did not say yet who invited them; oldest first
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_MEETING_POINT_H_
