#include "pmi/launch/event_poller.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <iterator>
#include <utility>

namespace weft::pmi {
namespace {

epoll_event EventFor(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return event;
}

}  // namespace

EventPoller::~EventPoller() {
  if (epoll_ >= 0) close(epoll_);
}

bool EventPoller::Watch(int fd, uint32_t events, Handler ready) {
  if (fd < 0) return true;
  if (epoll_ < 0 && (epoll_ = epoll_create1(EPOLL_CLOEXEC)) < 0) return false;
  epoll_event event = EventFor(fd, events);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
  const auto at = static_cast<size_t>(fd);
  if (at >= entries_.size()) entries_.resize(at + 1);
  entries_[at] = std::make_shared<Entry>(Entry{events, std::move(ready)});
  return true;
}

void EventPoller::Change(int fd, uint32_t events) {
  if (fd < 0) return;
  Entry& entry = *entries_[static_cast<size_t>(fd)];
  if (std::exchange(entry.events, events) == events) return;
  epoll_event event = EventFor(fd, events);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void EventPoller::Forget(int fd) {
  const auto at = static_cast<size_t>(fd);
  if (fd < 0 || at >= entries_.size() || entries_[at] == nullptr) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  entries_[at].reset();
}

void EventPoller::Wait(int milliseconds) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_, events, std::size(events), milliseconds);
  for (int i = 0; i < count; ++i) {
    // An earlier call may have ended it; one that took its number since copes with not being ready.
    const std::shared_ptr<Entry> entry = entries_[static_cast<size_t>(events[i].data.fd)];
    if (entry != nullptr) entry->ready(events[i].events);
  }
}

}  // namespace weft::pmi
