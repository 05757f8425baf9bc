#include "mpi_hybrid/p2p/loop/event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/deadline.h"
#include "mpi_hybrid/core/lock.h"

namespace weft::mpi {
namespace {

constexpr int kEventsPerTurn = 64;

uint64_t KeyOf(uint32_t slot, uint32_t generation) { return uint64_t{generation} << 32 | slot; }

}  // namespace

// --- registrations ---

EventLoop::Registration::Registration(EventLoop& loop, int fd, uint32_t events, Handler& handler, Urgency urgency)
    : loop_(&loop), fd_(fd), key_(loop.TakeSlot(handler)), urgency_(urgency) {
  if (urgency_ == Urgency::kUrgent) ++loop.urgent_;
  loop.Control(EPOLL_CTL_ADD, fd, events, key_);
}

EventLoop::Registration& EventLoop::Registration::operator=(Registration&& other) noexcept {
  End();
  loop_ = std::exchange(other.loop_, nullptr);
  fd_ = other.fd_;
  key_ = other.key_;
  urgency_ = other.urgency_;
  return *this;
}

void EventLoop::Registration::SetEvents(uint32_t events) { loop_->Control(EPOLL_CTL_MOD, fd_, events, key_); }

void EventLoop::Registration::End() {
  if (loop_ == nullptr) return;
  loop_->Control(EPOLL_CTL_DEL, fd_, 0, 0);
  if (urgency_ == Urgency::kUrgent) --loop_->urgent_;
  const uint32_t number = static_cast<uint32_t>(key_);
  Slot& slot = loop_->slots_[number];
  slot.handler = nullptr;
  if (++slot.generation == 0) slot.generation = 1;
  loop_->free_.push_back(number);
  loop_ = nullptr;
}

uint64_t EventLoop::TakeSlot(Handler& handler) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t number = free_.back();
  free_.pop_back();
  slots_[number].handler = &handler;
  return KeyOf(number, slots_[number].generation);
}

void EventLoop::Control(int operation, int fd, uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  const int result = epoll_ctl(epoll_.get(), operation, fd, &event);
  WEFT_CHECK(result == 0 || operation == EPOLL_CTL_DEL);
}

void EventLoop::Watch(int fd) {
  ++urgent_;
  Control(EPOLL_CTL_ADD, fd, EPOLLIN, kForeign);
}

void EventLoop::Unwatch(int fd) {
  --urgent_;
  Control(EPOLL_CTL_DEL, fd, 0, 0);
}

// --- sleeping ---

bool EventLoop::Open() {
  wake_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_) return false;
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return false;
  Control(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, kWake);
  return true;
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  woken_ = true;
  if (naps_) nap_->End();
}

int EventLoop::Wait(epoll_event* events, int most, int timeout_ms) const {
  return epoll_wait(epoll_.get(), events, most, timeout_ms);
}

void EventLoop::Tell(const epoll_event& event) {
  const uint64_t key = event.data.u64;
  if (key == kForeign || key == kWake) return;
  const Slot& slot = slots_[static_cast<uint32_t>(key)];
  if (slot.handler != nullptr && slot.generation == key >> 32) slot.handler->OnReady(event.events);
}

bool EventLoop::Sleep(int timeout_ms) {
  epoll_event events[kEventsPerTurn];
  const auto due = deadline();
  const int until_due = due ? MillisecondsUntil(*due) : -1;
  const bool earlier = until_due >= 0 && (timeout_ms < 0 || until_due < timeout_ms);
  int most = earlier ? until_due : timeout_ms;
  const bool may_nap = nap_ != nullptr && urgent_ == 0 && most != 0;
  LibraryLock::Release();
  const bool news = may_nap && TakeNap(&most);
  int count = 0;
  if (!news || ++naps_in_a_row_ % kNapsInARow == 0 || woken_) count = Wait(events, kEventsPerTurn, news ? 0 : most);
  LibraryLock::Acquire();
  ++sleeps_;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == kWake) {
      woken_ = false;
      uint64_t wakes;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &wakes, sizeof(wakes));
    }
    Tell(events[i]);
  }
  OnTime();
  return news || count > 0;
}

// What of the timeout (-1: no limit) is left after it.
bool EventLoop::TakeNap(int* timeout_ms) {
  const int longest = static_cast<int>(kLongestNap.count()), most = *timeout_ms < 0 ? longest : std::min(*timeout_ms, longest);
  naps_ = true;
  const bool news = woken_ || nap_->Take(std::chrono::milliseconds(most));
  naps_ = false;
  if (*timeout_ms > 0) *timeout_ms -= most;
  return news;
}

bool EventLoop::Dispatch(int timeout_ms) {
  epoll_event events[kEventsPerTurn];
  const int count = Wait(events, kEventsPerTurn, timeout_ms);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    // For the thread that sleeps, which would sleep on if the first were read here; the second may stay ready while nobody sleeps.
    if (events[i].data.u64 == kWake || events[i].data.u64 == kForeign) continue;
    Tell(events[i]);
    any = true;
  }
  OnTime();
  return any;
}

std::optional<EventLoop::Clock::time_point> EventLoop::deadline() const {
  std::optional<Clock::time_point> first;
  for (const Timed* timed : timed_) {
    const auto at = timed->deadline();
    if (at && (!first || *at < *first)) first = at;
  }
  return first;
}

void EventLoop::OnTime() {
  std::optional<Clock::time_point> now;
  for (Timed* timed : timed_) {
    const auto at = timed->deadline();
    if (!at) continue;
    if (!now) now = Clock::now();
    if (*now >= *at) timed->OnTime(*now);
  }
}

}  // namespace weft::mpi
