#include "transport/sctp/usrsctp/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace weft::transport::sctp {
namespace {

// What is lent, and is not said to be again for so long, is not.
constexpr Duration kLendingLasts = std::chrono::microseconds(250);
// How often the network's thread looks whether it is: more seldom while whoever it is lent to comes in time.
constexpr Duration kShortestLook = std::chrono::microseconds(250), kLongestLook = std::chrono::milliseconds(1);

}  // namespace

void Dispatcher::Rouse(Watched& watched) {
  watched.may_read_ = true;
  if (watched.wants_room_) watched.may_have_room_ = true;
  if (watched.queued_ || watched.handler_ == nullptr) return;
  watched.queued_ = true;
  ready_.push_back(&watched);
}

void Dispatcher::Calm(const Watched& watched) {
  std::erase_if(ready_, [&](Watched* one) {
    if (one == &watched) one->queued_ = false;
    return one == &watched;
  });
}

void Dispatcher::Lend(Watched& watched) {
  watched.lent_until_.store((network_->Now() + kLendingLasts).time_since_epoch().count(), std::memory_order_relaxed);
}

bool Dispatcher::IsLent(const Watched& watched, Time now) const {
  return watched.lent_until_.load(std::memory_order_relaxed) > now.time_since_epoch().count();
}

Dispatcher::Due Dispatcher::WhatIsDue() {
  if (ready_.empty()) return Due::kNothing;
  const Time now = network_->Now();
  bool lent = false;
  for (const Watched* one : ready_) {
    if (!one->has_news()) continue;
    if (!IsLent(*one, now)) {
      if (dispatching_ > 0 || std::exchange(posted_, true)) return Due::kNothing;
      ++posts_;
      return Due::kPost;
    }
    lent = true;
  }
  left_ |= lent;
  return lent && !std::exchange(looking_, true) ? Due::kLook : Due::kNothing;
}

void Dispatcher::Arrange(Due due) {
  switch (due) {
    case Due::kNothing:
      return;
    case Due::kLook:
      return ArmLook(kShortestLook);
    case Due::kPost:
      network_->Post([this] {
        if (!alive_()) return;
        {
          const std::lock_guard lock(mutex_);
          posted_ = false;
        }
        Dispatch(/*lent_too=*/false);
      });
  }
}

void Dispatcher::Dispatch(bool lent_too) {
  std::vector<std::pair<std::shared_ptr<ReadyHandler>, Interest>> calls;
  {
    const std::lock_guard lock(mutex_);
    if (ready_.empty()) return;
    const Time now = network_->Now();
    std::vector<Watched*> round;
    round.swap(ready_);
    for (Watched* watched : round) {
      if (!lent_too && watched->has_news() && IsLent(*watched, now)) {
        ready_.push_back(watched);
        continue;
      }
      watched->queued_ = false;
      const Interest interest{.read = watched->may_read_ && watched->reading_, .write = watched->may_have_room_};
      watched->may_have_room_ = false;
      if (interest.write) watched->wants_room_ = false;
      if (!interest.read && !interest.write) continue;
      calls.emplace_back(watched->handler_, interest);
      // Once more, unless Receive() says in between that nothing is left.
      if (!interest.read) continue;
      watched->queued_ = true;
      ready_.push_back(watched);
    }
    ++dispatching_;
  }
  for (auto& [handler, interest] : calls) handler->OnReady(interest);
  Due due;
  {
    const std::lock_guard lock(mutex_);
    --dispatching_;
    due = WhatIsDue();
  }
  Arrange(due);
}

void Dispatcher::ArmLook(Duration after) {
  network_->RunAt(network_->Now() + after, [this, after] { OnLook(after); });
}

void Dispatcher::OnLook(Duration after) {
  if (!alive_()) return;
  Dispatch(/*lent_too=*/false);
  {
    const std::lock_guard lock(mutex_);
    looking_ = std::exchange(left_, false);
    if (!looking_) return;
  }
  ArmLook(std::min(2 * after, kLongestLook));
}

}  // namespace weft::transport::sctp
