#ifndef CM_CHANNEL_H_
#define CM_CHANNEL_H_

#include <rdma/rdma_cma.h>

#include <atomic>
#include <memory>
#include <vector>

#include "cm/event.h"
#include "sim/event_queue.h"

namespace weft::cm {

// An rdma_event_channel: events of many identifiers in the order in which they came, behind a file descriptor. Owns
// itself until Close; identifiers share it, so that one that outlives its channel (a program's mistake) is harmless.
// Thread safe.
class Channel : public rdma_event_channel, public std::enable_shared_from_this<Channel> {
 public:
  // nullptr and errno: no file descriptor left.
  static std::shared_ptr<Channel> Create();
  static Channel* From(rdma_event_channel* channel) { return static_cast<Channel*>(channel); }

  // After Close `event` stays with the caller, to be destroyed while it holds no lock: that may call the engine.
  void Push(std::unique_ptr<Event>& event);
  // The oldest event; waits unless the program made the descriptor non-blocking. nullptr and errno (EAGAIN, EINTR).
  std::unique_ptr<Event> Take();
  // Takes out all events of `owner`, in order. The caller destroys what it does not keep while it holds no lock.
  std::vector<std::unique_ptr<Event>> Extract(const Identifier* owner);
  // Drops what waits and what comes. The creator's reference ends here.
  void Close();
  bool closed() const { return closed_; }

 private:
  Channel() : rdma_event_channel{} {}

  sim::EventQueue<std::unique_ptr<Event>> queue_;
  std::atomic<bool> closed_ = false;
  std::shared_ptr<Channel> self_;  // the program's reference
};

// rdma_get_cm_event without its checks: the next event that still has a receiver. -1 and errno.
int GetEvent(Channel& channel, rdma_cm_event** event);

}  // namespace weft::cm

#endif  // CM_CHANNEL_H_
