// poll and select over rsockets and other descriptors.
#include <signal.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include "cm/rspreload/calls.h"
#include "cm/rspreload/descriptors.h"

using weft::rspreload::kDead;
using weft::rspreload::kNone;
using weft::rspreload::Lookup;
using weft::rspreload::Rsockets;

namespace {

bool AnyRsocket(const pollfd* fds, nfds_t count) {
  for (nfds_t i = 0; i < count; ++i) {
    if (Lookup(fds[i].fd) != kNone) return true;
  }
  return false;
}

// The numbers that rpoll knows. A dead one is left out: it reports nothing.
int PollAll(pollfd* fds, nfds_t count, int timeout) {
  thread_local std::vector<pollfd> translated;
  translated.assign(fds, fds + count);
  for (nfds_t i = 0; i < count; ++i) {
    const int rsocket = Lookup(fds[i].fd);
    if (rsocket == kDead) translated[i].fd = -1;
    if (rsocket >= 0) translated[i].fd = rsocket;
  }
  const int ready = Rsockets::Get()->poll(translated.data(), count, timeout);
  if (ready >= 0) {
    for (nfds_t i = 0; i < count; ++i) fds[i].revents = translated[i].revents;
  }
  return ready;
}

int Milliseconds(const timespec* timeout) {
  if (timeout == nullptr) return -1;
  return static_cast<int>(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
}

// The mask holds while it waits. Unlike the kernel's, this is no single step.
class Masked {
 public:
  explicit Masked(const sigset_t* mask) : set_(mask != nullptr) {
    if (set_) pthread_sigmask(SIG_SETMASK, mask, &before_);
  }
  ~Masked() {
    if (set_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  bool set_;
  sigset_t before_{};
};

bool AnyRsocket(int nfds, const fd_set* set) {
  if (set == nullptr) return false;
  for (int fd = 0; fd < nfds; ++fd) {
    if (FD_ISSET(fd, set) && Lookup(fd) != kNone) return true;
  }
  return false;
}

// Through poll: an rsocket's number may lie beyond what the program's sets hold.
int SelectAll(int nfds, fd_set* readable, fd_set* writable, fd_set* exceptional, int timeout) {
  std::vector<pollfd> fds;
  for (int fd = 0; fd < nfds; ++fd) {
    short events = 0;
    if (readable != nullptr && FD_ISSET(fd, readable)) events |= POLLIN;
    if (writable != nullptr && FD_ISSET(fd, writable)) events |= POLLOUT;
    if (exceptional != nullptr && FD_ISSET(fd, exceptional)) events |= POLLPRI;
    if (events != 0) fds.push_back({fd, events, 0});
  }
  if (PollAll(fds.data(), fds.size(), timeout) < 0) return -1;
  for (const pollfd& one : fds) {
    if ((one.revents & POLLNVAL) == 0) continue;
    errno = EBADF;
    return -1;
  }
  int bits = 0;
  const auto show = [&](fd_set* set, const pollfd& one, int asked, int shows) {
    if (set == nullptr || (one.events & asked) == 0) return;
    if ((one.revents & shows) != 0) {
      ++bits;
    } else {
      FD_CLR(one.fd, set);
    }
  };
  for (const pollfd& one : fds) {
    show(readable, one, POLLIN, POLLIN | POLLHUP | POLLERR);
    show(writable, one, POLLOUT, POLLOUT | POLLERR);
    show(exceptional, one, POLLPRI, POLLPRI);
  }
  return bits;
}

}  // namespace

WEFT_PRELOAD_EXPORT int poll(pollfd* fds, nfds_t count, int timeout) {
  WEFT_NEXT(poll);
  return AnyRsocket(fds, count) ? PollAll(fds, count, timeout) : next(fds, count, timeout);
}

WEFT_PRELOAD_EXPORT int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t /*room*/) { return poll(fds, count, timeout); }

WEFT_PRELOAD_EXPORT int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  WEFT_NEXT(ppoll);
  if (!AnyRsocket(fds, count)) return next(fds, count, timeout, mask);
  const Masked masked(mask);
  return PollAll(fds, count, Milliseconds(timeout));
}

WEFT_PRELOAD_EXPORT int select(int nfds, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout) {
  WEFT_NEXT(select);
  if (!AnyRsocket(nfds, readable) && !AnyRsocket(nfds, writable) && !AnyRsocket(nfds, exceptional)) {
    return next(nfds, readable, writable, exceptional, timeout);
  }
  const int limit = timeout == nullptr ? -1 : static_cast<int>(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
  return SelectAll(nfds, readable, writable, exceptional, limit);
}

WEFT_PRELOAD_EXPORT int pselect(int nfds, fd_set* readable, fd_set* writable, fd_set* exceptional, const timespec* timeout,
                                const sigset_t* mask) {
  WEFT_NEXT(pselect);
  if (!AnyRsocket(nfds, readable) && !AnyRsocket(nfds, writable) && !AnyRsocket(nfds, exceptional)) {
    return next(nfds, readable, writable, exceptional, timeout, mask);
  }
  const Masked masked(mask);
  return SelectAll(nfds, readable, writable, exceptional, Milliseconds(timeout));
}
