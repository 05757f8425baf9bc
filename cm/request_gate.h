#ifndef CM_REQUEST_GATE_H_
#define CM_REQUEST_GATE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "cm/event.h"

namespace weft::cm {

// Lets a listener's connection requests through to the program one by one: the next follows when the program has begun to work on
// the one before it, or has had it for a while without. Servers that hand a request from the thread that gets events to another
// in a single variable (rdma-core 44's rping -P is one) rely on requests lying further apart than a thread's wake-up, as they
// do with an RNIC, and lose clients when two come at once.
//
// Not thread safe: its listener's mutex guards it. It reads no clock; the caller starts a timer when NeedsTimer() says so.
class RequestGate {
 public:
  using Events = std::vector<std::unique_ptr<Event>>;

  // A request came. True: tell of it now; else it stays here.
  bool Admit(std::unique_ptr<Event>& request) {
    if (announced_ == 0 && held_.empty()) {
      ++announced_;
      return true;
    }
    held_.push_back(std::move(request));
    return false;
  }
  // The program got an announced request.
  void OnDelivered() { ++delivered_; }
  // It began to work on one, or that one went away: what may follow now.
  Events OnTouched() {
    --delivered_;
    return --announced_ == 0 ? Release(1) : Events{};
  }
  // The time is over: a program that collects requests first gets them all.
  Events OnExpired() {
    timing_ = false;
    return delivered_ > 0 ? Release(held_.size()) : Events{};
  }
  // True, once: requests wait for a program that has one and does nothing with it. OnExpired() is to be called a while from now.
  bool NeedsTimer() {
    if (timing_ || held_.empty() || delivered_ == 0) return false;
    return timing_ = true;
  }
  // The listener ends, or its channel was closed: everything that was held; what was announced and not delivered is gone.
  Events Clear() {
    Events held = Release(held_.size());
    announced_ = delivered_;
    return held;
  }

 private:
  Events Release(size_t most) {
    Events released;
    for (; most > 0 && !held_.empty(); --most) {
      released.push_back(std::move(held_.front()));
      held_.pop_front();
      ++announced_;
    }
    return released;
  }

  std::deque<std::unique_ptr<Event>> held_;
  size_t announced_ = 0;  // let through and not touched
  size_t delivered_ = 0;  // of them, those that the program has
  bool timing_ = false;
};

}  // namespace weft::cm

#endif  // CM_REQUEST_GATE_H_
