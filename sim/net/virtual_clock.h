#ifndef SIM_NET_VIRTUAL_CLOCK_H_
#define SIM_NET_VIRTUAL_CLOCK_H_

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/net/link.h"
#include "transport/timer_queue.h"

namespace weft::sim {

// Time that passes only when somebody says so, and what is to happen in it.
class VirtualClock {
 public:
  Time Now() const { return now_; }
  // At `when`, or now if that is past; in the order of adding when at the same time.
  transport::TimerId At(Time when, std::function<void()> work) {
    return queue_.Add(std::max(when, now_), std::move(work));
  }
  transport::TimerId After(Duration delay, std::function<void()> work) { return At(now_ + delay, std::move(work)); }
  bool Cancel(transport::TimerId id) { return queue_.Cancel(id) != nullptr; }

  // Of the next work; Time::max() when there is none.
  Time NextDue() const { return queue_.NextDue(); }
  void AdvanceTo(Time when) { now_ = std::max(now_, when); }
  // Runs one piece of work that is due; false when none is.
  bool RunOneDue() {
    std::function<void()> work = queue_.TakeDue(now_);
    if (work == nullptr) return false;
    work();
    return true;
  }
  // Drops what has not run, and what is added by that.
  void DropAll() {
    while (NextDue() != Time::max()) std::exchange(queue_, {});
  }

 private:
  // Not zero, so that a forgotten time stands out.
  Time now_{std::chrono::seconds(1)};
  transport::TimerQueue queue_;
};

}  // namespace weft::sim

#endif  // SIM_NET_VIRTUAL_CLOCK_H_
