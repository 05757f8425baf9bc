#ifndef CM_CHANNEL_H_
#define CM_CHANNEL_H_

#include <rdma/rdma_cma.h>

#include <memory>
#include <mutex>
#include <vector>

#include "cm/event.h"
#include "sim/queues/event_queue.h"

namespace weft::cm {

// An rdma_event_channel: the events of many identifiers, in the order of their arrival, with a file descriptor. Owns
// itself until Close. Identifiers share it, so an identifier that outlives its channel (a mistake of the program) does
// no harm. Thread safe.
class Channel : public rdma_event_channel, public std::enable_shared_from_this<Channel> {
 public:
  // nullptr and errno: no file descriptor is left.
  static std::shared_ptr<Channel> Create();
  static Channel* From(rdma_event_channel* channel) { return static_cast<Channel*>(channel); }

  // Adds an event. After Close, `event` stays with the caller. The caller destroys it without holding a lock, since the
  // destructor may call the engine.
  void Push(std::unique_ptr<Event>& event);
  // Returns the oldest event; waits unless the program made the descriptor non-blocking. nullptr and errno: EAGAIN,
  // EINTR, or EBADF after Close. If another thread closes the channel, a waiting thread goes on waiting, as with the
  // kernel; so does a thread that calls right after, unless the descriptor was non-blocking.
  std::unique_ptr<Event> Take();
  // Removes and returns all events of `owner`, in order. The caller destroys those that it does not keep without
  // holding a lock.
  std::vector<std::unique_ptr<Event>> Extract(const Identifier* owner);
  // Drops waiting and later events, and closes the descriptor once no thread waits there. Releases the creator's
  // reference.
  void Close();
  bool closed() const;

 private:
  using Queue = sim::EventQueue<std::unique_ptr<Event>>;

  Channel() : rdma_event_channel{}, queue_(std::make_shared<Queue>()) {}
  std::shared_ptr<Queue> queue() const;

  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<Queue> queue_;  // nullptr: closed
  bool blocking_ = true;          // after Close: the mode that the program had set
  std::shared_ptr<Channel> self_;  // the program's reference
};

// rdma_get_cm_event without its checks: the next event whose receiver still exists. -1 and errno.
int GetEvent(Channel& channel, rdma_cm_event** event);

}  // namespace weft::cm

#endif  // CM_CHANNEL_H_
