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

// Two processes that met. It is proven that they run on one kernel, in one network name space, for one user.
struct Met {
  std::unique_ptr<SharedMemory> memory;
  Descriptor bell;  // a connected socket: one byte wakes the other process
  pid_t peer = 0;   // its pid in our name space; 0: it has none
};

// Where processes of one host meet that are already connected over TCP, and the proof that they are on one host. It is
// an abstract Unix socket, which only processes of one network name space can reach. Each side learns from the kernel
// for which user the other one runs (SO_PEERCRED), and accepts only its own user. A nonce, which was sent over the TCP
// connection, ties the meeting to that connection. The responder connects before it answers. So the descriptor must
// already be in the socket when the answer arrives; it is not waited for. Thread safe; no call blocks.
class MeetingPoint {
 public:
  MeetingPoint() = default;
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  // Initiator. nullopt: there is no room for a socket, or it is forbidden.
  std::optional<Invitation> Invite();
  // The process that came with that invitation, which is then used up. nullptr: none did.
  std::unique_ptr<Met> Collect(const Invitation& invitation);
  void Withdraw(const Invitation& invitation);

  // Responder: connects to the meeting point. nullptr: nobody is there, the other process belongs to another user, or
  // there is no room (descriptors, memory).
  static std::unique_ptr<Met> Visit(const Invitation& invitation);

 private:
  static constexpr size_t kMostSilent = 64;

  bool Open();          // requires the mutex
  void TakeVisitors();  // requires the mutex
  // Returns false if there is no result yet.
  bool Hear(Descriptor& visitor);

  std::mutex mutex_;  // guards the members below
  Descriptor socket_;
  uint64_t point_ = 0;
  std::map<Nonce, std::unique_ptr<Met>> invited_;  // null: has not come yet
  // visitors of our user that have not yet named their invitation; oldest first
  std::vector<Descriptor> silent_;
};

}  // namespace weft::host

#endif  // WIRES_HOST_MEETING_MEETING_POINT_H_
