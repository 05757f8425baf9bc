#ifndef TRANSPORT_EPOLL_H_
#define TRANSPORT_EPOLL_H_

#include <sys/epoll.h>

#include <span>

#include "transport/network.h"

namespace weft::transport {

// An epoll instance and the eventfd that wakes its sleeper. Owns both descriptors. Add, Modify, Remove and Wake may be
// called from any thread, Wait from one.
class Epoll {
 public:
  // The key of the wake-up; watches use others.
  static constexpr uint64_t kWakeKey = 0;

  Epoll() = default;
  ~Epoll();
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  // 0 or an errno. May be called again after a failure, and after success does nothing.
  int Open();

  // Each: 0 or an errno. An empty interest reports nothing, or an error once.
  int Add(int fd, Interest interest, uint64_t key) { return Control(EPOLL_CTL_ADD, fd, interest, key); }
  int Modify(int fd, Interest interest, uint64_t key) { return Control(EPOLL_CTL_MOD, fd, interest, key); }
  int Remove(int fd) { return Control(EPOLL_CTL_DEL, fd, {}, 0); }

  // Makes the current Wait return, or the next.
  void Wake();

  // Sleeps until something is ready, at most until `deadline` (Time::max(): for ever; a past time: not at all). Returns
  // the events, which live in `storage`; none on time-out or interruption.
  std::span<const epoll_event> Wait(std::span<epoll_event> storage, Time deadline);

  // What is ready now, without sleeping; for a thread that stands in for the one in WaitForWake.
  std::span<const epoll_event> Poll(std::span<epoll_event> storage) { return Wait(storage, Time::min()); }

  // Sleeps until Wake or `deadline`, whatever is ready meanwhile.
  void WaitForWake(Time deadline);

  static Interest ReadyOf(uint32_t events);

 private:
  int Control(int operation, int fd, Interest interest, uint64_t key);
  int WaitOnce(int epoll_fd, std::span<epoll_event> storage, Time deadline);

  int epoll_fd_ = -1;
  int wake_epoll_fd_ = -1;  // has the wake-up only
  int wake_fd_ = -1;
  bool has_nanoseconds_ = true;  // the kernel has epoll_pwait2 (5.11) and nothing forbids it
};

}  // namespace weft::transport

#endif  // TRANSPORT_EPOLL_H_
