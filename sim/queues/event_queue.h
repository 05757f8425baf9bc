#ifndef SIM_QUEUES_EVENT_QUEUE_H_
#define SIM_QUEUES_EVENT_QUEUE_H_

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/uncancelled.h"

namespace weft::sim {

// A queue of events with a file descriptor that a program may poll, select or make non-blocking. The descriptor is
// readable exactly while events wait, and each event causes one wake-up (also edge-triggered). Used for completion
// channels, asynchronous events and rdma_cm event channels. Thread safe.
template <typename Event>
class EventQueue {
 public:
  EventQueue() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}
  ~EventQueue() {
    if (fd_ >= 0) uncancelled::Close(fd_);
  }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // -1: the process is out of file descriptors.
  int fd() const { return fd_; }

  void Push(Event event) {
    {
      std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    // Without the lock, which the thread that this wakes takes at once.
    const uint64_t one = 1;
    [[maybe_unused]] ssize_t written = uncancelled::Write(fd_, &one, sizeof one);
  }

  // Returns the oldest event. Waits for one, unless the program made the descriptor non-blocking (errno is then
  // EAGAIN). nullopt with errno EINTR after a signal.
  std::optional<Event> Pop() {
    return Pop([](const Event&) {});
  }

  // The same. `on_taken(event)` runs before any Remove that no longer finds the event can return.
  template <typename OnTaken>
  std::optional<Event> Pop(OnTaken on_taken) {
    for (;;) {
      {
        std::lock_guard lock(mutex_);
        if (!events_.empty()) {
          Event event = TakeFirst();
          on_taken(event);
          return event;
        }
      }
      if (fcntl(fd_, F_GETFL) & O_NONBLOCK) {
        errno = EAGAIN;
        return std::nullopt;
      }
      pollfd ready{fd_, POLLIN, 0};
      if (poll(&ready, 1, -1) < 0) return std::nullopt;
    }
  }

  // The oldest event if there is one.
  std::optional<Event> TryPop() {
    std::lock_guard lock(mutex_);
    if (events_.empty()) return std::nullopt;
    return TakeFirst();
  }

  // Drops waiting events for which `matches(event)`; returns how many.
  template <typename Predicate>
  size_t Remove(Predicate matches) {
    std::lock_guard lock(mutex_);
    size_t removed = 0;
    for (auto it = events_.begin(); it != events_.end();) {
      if (matches(*it)) {
        it = events_.erase(it);
        TakeToken();
        ++removed;
      } else {
        ++it;
      }
    }
    return removed;
  }

 private:
  // The descriptor counts the events. Only the holder of mutex_ reads it, so the read waits for nothing but a Push that has its event in the queue and is
  // about to count it.
  void TakeToken() {
    uint64_t one;
    while (uncancelled::Read(fd_, &one, sizeof one) < 0 && (errno == EAGAIN || errno == EINTR)) {
      const uncancelled::Scope scope;
      pollfd counted{fd_, POLLIN, 0};
      poll(&counted, 1, -1);
    }
  }

  Event TakeFirst() {
    TakeToken();
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  const int fd_;
  std::mutex mutex_;  // guards events_ and reading fd_
  std::deque<Event> events_;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_EVENT_QUEUE_H_
