#ifndef SIM_NET_VIRTUAL_CLOCK_H_
#define SIM_NET_VIRTUAL_CLOCK_H_

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/net/link.h"
#include "transport/timer_queue.h"

namespace weft::sim {

// A clock that advances only when told to, and the work that is due at given times.
class VirtualClock {
 public:
  Time Now() const { return now_; }
  // Runs `work` at `when`, or now if that has passed. Work for the same time runs in the order of adding.
  transport::TimerId At(Time when, std::function<void()> work) {
    return queue_.Add(std::max(when, now_), std::move(work));
  }
  transport::TimerId After(Duration delay, std::function<void()> work) { return At(now_ + delay, std::move(work)); }
  bool Cancel(transport::TimerId id) { return queue_.Cancel(id) != nullptr; }

  // When the next work is due; Time::max() if there is none.
  Time NextDue() const { return queue_.NextDue(); }
  void AdvanceTo(Time when) { now_ = std::max(now_, when); }
  // Runs one piece of work that is due. Returns false if there is none.
  bool RunOneDue() {
    std::function<void()> work = queue_.TakeDue(now_);
    if (work == nullptr) return false;
    work();
    return true;
  }
  // Drops all work, also work that is added meanwhile.
  void DropAll() {
    while (NextDue() != Time::max()) std::exchange(queue_, {});
  }

 private:
  // Not zero, so that an unset time is noticed.
  Time now_{std::chrono::seconds(1)};
  transport::TimerQueue queue_;
};

}  // namespace weft::sim

#endif  // SIM_NET_VIRTUAL_CLOCK_H_
