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

  // Returns 0 or an errno. May be called again after a failure; after success it does nothing.
  int Open();
  int fd() const { return fd_; }

  // Each returns 0 or an errno. With an empty interest, nothing is reported, or an error once.
  int Add(int fd, Interest interest, uint64_t key) { return Control(EPOLL_CTL_ADD, fd, interest, key); }
  int Modify(int fd, Interest interest, uint64_t key) { return Control(EPOLL_CTL_MOD, fd, interest, key); }
  int Remove(int fd) { return Control(EPOLL_CTL_DEL, fd, {}, 0); }

  // Sleeps until a descriptor is ready, at most until `deadline` (Time::max(): for ever; a past time: not at all).
  // Returns the events, which are in `storage`; none after a time-out or an interruption.
  std::span<const epoll_event> Wait(std::span<epoll_event> storage, Time deadline);

  // Returns what is ready now, without sleeping.
  std::span<const epoll_event> Poll(std::span<epoll_event> storage) { return Wait(storage, Time::min()); }

  static Interest ReadyOf(uint32_t events);

 private:
  int Control(int operation, int fd, Interest interest, uint64_t key);
  int WaitOnce(std::span<epoll_event> storage, Time deadline);

  int fd_ = -1;
};

// The set of descriptors in which the progress thread sleeps, with an eventfd that wakes it.
class Epoll {
 public:
  // The key of the wake-up; watches use others.
  static constexpr uint64_t kWakeKey = 0;

  Epoll() = default;
  ~Epoll();
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  // See EpollSet::Open.
  int Open();

  // All descriptors except the wake-up. Only one thread may call Wait, or Poll while it replaces a thread that is in
  // WaitForWake.
  EpollSet& set() { return set_; }

  // Makes the current or the next Wait return. Any thread.
  void Wake();

  // Sleeps until Wake or `deadline`, regardless of what is ready.
  void WaitForWake(Time deadline);

 private:
  EpollSet set_;
  EpollSet wakes_;  // has only the wake-up
  int wake_fd_ = -1;
};

}  // namespace weft::transport

#endif  // TRANSPORT_EPOLL_H_
