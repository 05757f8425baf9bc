#ifndef CM_REQUEST_GATE_H_
#define CM_REQUEST_GATE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "cm/event.h"

namespace weft::cm {

// Announces a listener's connection requests to the program one at a time. The next request follows when the program
// has begun to work on the one before it, or has had it for a while without using it. Some servers hand a request from
// the event thread to another thread in a single variable (one is `rping -P` of rdma-core 44). They rely on requests
// arriving further apart than the time in which a thread wakes up, as with an RNIC, and lose clients if two arrive at
// once.
//
// Not thread safe: the listener's mutex guards it. It reads no clock; the caller starts a timer when NeedsTimer() is
// true.
class RequestGate {
 public:
  using Events = std::vector<std::unique_ptr<Event>>;

  // A request arrived. Returns true if it is to be announced now; otherwise the gate keeps it.
  bool Admit(std::unique_ptr<Event>& request) {
    if (announced_ == 0 && held_.empty()) {
      ++announced_;
      return true;
    }
    held_.push_back(std::move(request));
    return false;
  }
  // The program has fetched an announced request.
  void OnDelivered() { ++delivered_; }
  // The program began to work on a request, or a request went away. Returns the requests to announce now.
  Events OnTouched() {
    --delivered_;
    return --announced_ == 0 ? Release(1) : Events{};
  }
  // The time is over. Returns all requests, for a program that collects requests first.
  Events OnExpired() {
    timing_ = false;
    return delivered_ > 0 ? Release(held_.size()) : Events{};
  }
  // Returns true, once, if requests wait and the program does nothing with the one that it has. OnExpired() must then
  // be called after a while.
  bool NeedsTimer() {
    if (timing_ || held_.empty() || delivered_ == 0) return false;
    return timing_ = true;
  }
  // The listener ends, or its channel was closed. Returns all requests that were held. Requests that were announced but
  // not fetched are gone.
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
  size_t announced_ = 0;  // announced and not used yet
  size_t delivered_ = 0;  // those of them that the program has fetched
  bool timing_ = false;
};

}  // namespace weft::cm

#endif  // CM_REQUEST_GATE_H_
