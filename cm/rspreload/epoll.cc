// epoll with rsockets in it: they are kept here, everything else is in the kernel's set, which counts as one more descriptor.
// Rsockets are level-triggered always; EPOLLONESHOT is kept.
#include "cm/rspreload/epoll.h"

#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <vector>

#include "cm/rspreload/calls.h"
#include "cm/rspreload/descriptors.h"

using weft::rspreload::kDead;
using weft::rspreload::kNone;
using weft::rspreload::Lookup;
using weft::rspreload::Rsockets;

namespace {

struct Watched {
  int fd;
  int rsocket;
  epoll_event event;
};

std::mutex mutex;  // guards sets
std::map<int, std::vector<Watched>>& Sets() {
  static auto* const sets = new std::map<int, std::vector<Watched>>;
  return *sets;
}

// A set ever had an rsocket. Until then nothing is locked: the adapter's thread waits here too, and the program may fork.
std::atomic<bool> in_use{false};

int Fail(int error) {
  errno = error;
  return -1;
}

// poll(2)'s bits are epoll's.
constexpr uint32_t kStates = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLRDNORM | EPOLLWRNORM;

// What is watched in `set` and still open.
std::vector<Watched> WatchedIn(int set) {
  if (!in_use.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex);
  const auto found = Sets().find(set);
  if (found == Sets().end()) return {};
  std::erase_if(found->second, [](const Watched& one) { return Lookup(one.fd) != one.rsocket; });
  return found->second;
}

void Disarm(int set, int fd) {
  std::lock_guard lock(mutex);
  for (Watched& one : Sets()[set]) {
    if (one.fd == fd) one.event.events &= ~kStates;
  }
}

int Wait(int set, epoll_event* events, int most, int timeout, const std::vector<Watched>& watched) {
  static const auto next = weft::rspreload::Next<decltype(&epoll_wait)>("epoll_wait");
  if (most <= 0) return Fail(EINVAL);
  std::vector<pollfd> fds;
  for (const Watched& one : watched) {
    fds.push_back({one.rsocket, static_cast<short>(one.event.events & kStates), 0});
    if ((one.event.events & kStates) == 0) fds.back().fd = -1;  // after EPOLLONESHOT
  }
  fds.push_back({set, POLLIN, 0});
  const int ready = Rsockets::Get()->poll(fds.data(), fds.size(), timeout);
  if (ready <= 0) return ready;
  int count = 0;
  for (size_t i = 0; i < watched.size() && count < most; ++i) {
    if (fds[i].revents == 0) continue;
    events[count++] = {static_cast<uint32_t>(fds[i].revents), watched[i].event.data};
    if ((watched[i].event.events & EPOLLONESHOT) != 0) Disarm(set, watched[i].fd);
  }
  if (fds.back().revents != 0 && count < most) {
    const int others = next(set, events + count, most - count, 0);
    if (others > 0) count += others;
  }
  return count;
}

}  // namespace

namespace weft::rspreload {

void ForgetEpollSet(int set) {
  if (!in_use.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex);
  Sets().erase(set);
}

}  // namespace weft::rspreload

WEFT_PRELOAD_EXPORT int epoll_ctl(int set, int operation, int fd, epoll_event* event) {
  WEFT_NEXT(epoll_ctl);
  const int rsocket = Lookup(fd);
  if (rsocket == kNone) return next(set, operation, fd, event);
  if (rsocket == kDead) return Fail(ENOTCONN);
  if (operation != EPOLL_CTL_DEL && event == nullptr) return Fail(EFAULT);
  in_use.store(true, std::memory_order_release);
  std::lock_guard lock(mutex);
  auto& watched = Sets()[set];
  std::erase_if(watched, [](const Watched& one) { return Lookup(one.fd) != one.rsocket; });
  const auto found = std::find_if(watched.begin(), watched.end(), [&](const Watched& one) { return one.fd == fd; });
  switch (operation) {
    case EPOLL_CTL_ADD:
      if (found != watched.end()) return Fail(EEXIST);
      watched.push_back({fd, rsocket, *event});
      return 0;
    case EPOLL_CTL_MOD:
      if (found == watched.end()) return Fail(ENOENT);
      found->event = *event;
      return 0;
    case EPOLL_CTL_DEL:
      if (found == watched.end()) return Fail(ENOENT);
      watched.erase(found);
      return 0;
    default:
      return Fail(EINVAL);
  }
}

WEFT_PRELOAD_EXPORT int epoll_wait(int set, epoll_event* events, int most, int timeout) {
  WEFT_NEXT(epoll_wait);
  const auto watched = WatchedIn(set);
  return watched.empty() ? next(set, events, most, timeout) : Wait(set, events, most, timeout, watched);
}

WEFT_PRELOAD_EXPORT int epoll_pwait(int set, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  WEFT_NEXT(epoll_pwait);
  const auto watched = WatchedIn(set);
  if (watched.empty()) return next(set, events, most, timeout, mask);
  sigset_t before;
  if (mask != nullptr) pthread_sigmask(SIG_SETMASK, mask, &before);
  const int ready = Wait(set, events, most, timeout, watched);
  if (mask != nullptr) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ready;
}
