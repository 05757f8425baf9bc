#ifndef TRANSPORT_EPOLL_H_
#define TRANSPORT_EPOLL_H_

#include <sys/epoll.h>

#include <span>

#include "transport/network.h"

namespace weft::transport {

// An epoll instance; owns its descriptor. Thread safe.
class EpollSet {
 public:
  EpollSet() = default;
  ~EpollSet();
  EpollSet(const EpollSet&) = delete;
  EpollSet& operator=(const EpollSet&) = delete;

  // 0 or an errno. May be called again after a failure, and after success does nothing.
  int Open();
  int fd() const { return fd_; }

  // Each: 0 or an errno. An empty interest reports nothing, or an error once.
  int Add(int fd, Interest interest, uint64_t key) { return Control(EPOLL_CTL_ADD, fd, interest, key); }
  int Modify(int fd, Interest interest, uint64_t key) { return Control(EPOLL_CTL_MOD, fd, interest, key); }
  int Remove(int fd) { return Control(EPOLL_CTL_DEL, fd, {}, 0); }

  // Sleeps until something is ready, at most until `deadline` (Time::max(): for ever; a past time: not at all). Returns
  // the events, which live in `storage`; none on time-out or interruption.
  std::span<const epoll_event> Wait(std::span<epoll_event> storage, Time deadline);

  // What is ready now, without sleeping.
  std::span<const epoll_event> Poll(std::span<epoll_event> storage) { return Wait(storage, Time::min()); }

  static Interest ReadyOf(uint32_t events);

 private:
  int Control(int operation, int fd, Interest interest, uint64_t key);
  int WaitOnce(std::span<epoll_event> storage, Time deadline);

  int fd_ = -1;
};

// What the progress thread sleeps in: a set of descriptors, and an eventfd that wakes the sleeper.
class Epoll {
 public:
  // The key of the wake-up; watches use others.
  static constexpr uint64_t kWakeKey = 0;

  Epoll() = default;
  ~Epoll();
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  // As EpollSet::Open.
  int Open();

  // All but the wake-up. Wait from one thread, or Poll from one that stands in for that in WaitForWake.
  EpollSet& set() { return set_; }

  // Makes the current Wait return, or the next. Any thread.
  void Wake();

  // Sleeps until Wake or `deadline`, whatever is ready meanwhile.
  void WaitForWake(Time deadline);

 private:
  EpollSet set_;
  EpollSet wakes_;  // has the wake-up only
  int wake_fd_ = -1;
};

}  // namespace weft::transport

#endif  // TRANSPORT_EPOLL_H_
