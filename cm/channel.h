#ifndef CM_CHANNEL_H_
#define CM_CHANNEL_H_

#include <rdma/rdma_cma.h>

#include <memory>
#include <mutex>
#include <vector>

#include "cm/event.h"
#include "sim/queues/event_queue.h"

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
  // The oldest event; waits unless the program made the descriptor non-blocking. nullptr and errno (EAGAIN, EINTR; EBADF after
  // Close). A thread that waits when another one closes the channel goes on waiting, as in the kernel, and so does one that comes a
  // moment later, unless the descriptor did not block.
  std::unique_ptr<Event> Take();
  // Takes out all events of `owner`, in order. The caller destroys what it does not keep while it holds no lock.
  std::vector<std::unique_ptr<Event>> Extract(const Identifier* owner);
  // Drops what waits and what comes, and closes the descriptor once nobody waits there. The creator's reference ends here.
  void Close();
  bool closed() const;

 private:
  using Queue = sim::EventQueue<std::unique_ptr<Event>>;

  Channel() : rdma_event_channel{}, queue_(std::make_shared<Queue>()) {}
  std::shared_ptr<Queue> queue() const;

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<Queue> queue_;  // nullptr: closed
  bool blocking_ = true;          // once closed: as the program had set its descriptor
  std::shared_ptr<Channel> self_;  // the program's reference
};

// rdma_get_cm_event without its checks: the next event that still has a receiver. -1 and errno.
int GetEvent(Channel& channel, rdma_cm_event** event);

}  // namespace weft::cm

#endif  // CM_CHANNEL_H_
