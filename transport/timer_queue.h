#ifndef TRANSPORT_TIMER_QUEUE_H_
#define TRANSPORT_TIMER_QUEUE_H_

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "transport/network.h"

namespace weft::transport {

// Work ordered by its due time. Work due at the same time keeps the order in which it was added. Not thread safe: the
// network that owns it serialises.
class TimerQueue {
 public:
  using Work = std::function<void()>;
  static constexpr Time kNever = Time::max();

  TimerId Add(Time when, Work work) {
    TimerId id = ++last_id_;
    queue_.emplace(Key(when, id), std::move(work));
    due_.emplace(id, when);
    return id;
  }

  // Removes and returns the work without running it; empty if it was already removed or never existed.
  Work Cancel(TimerId id) {
    auto due = due_.find(id);
    if (due == due_.end()) return nullptr;
    return Take(queue_.find(Key(due->second, id)));
  }

  // When the earliest work is due; kNever if there is none.
  Time NextDue() const { return queue_.empty() ? kNever : queue_.begin()->first.first; }

  // The earliest work that is due at `now`, or empty.
  Work TakeDue(Time now) { return NextDue() > now || queue_.empty() ? nullptr : Take(queue_.begin()); }

 private:
  using Key = std::pair<Time, TimerId>;
  using Queue = std::map<Key, Work>;

  Work Take(Queue::iterator at) {
    Work work = std::move(at->second);
    due_.erase(at->first.second);
    queue_.erase(at);
    return work;
  }

  TimerId last_id_ = 0;
  Queue queue_;
  std::unordered_map<TimerId, Time> due_;
};

}  // namespace weft::transport

#endif  // TRANSPORT_TIMER_QUEUE_H_
