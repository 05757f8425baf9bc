#ifndef BASE_HIGH_DESCRIPTOR_H_
#define BASE_HIGH_DESCRIPTOR_H_

#include <fcntl.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace weft {

// A program that uses select(2) cannot use descriptors from FD_SETSIZE (1,024) on: FD_SET would write beyond its set.
// With an adapter such a program could still have thousands of connections. So the RNIC leaves the upper half of the
// numbers below FD_SETSIZE to the program.
inline constexpr int kSocketsBelow = FD_SETSIZE / 2;

// Returns `fd`, a socket that was just opened, or moves it above FD_SETSIZE and returns the new descriptor. Accepts -1
// and returns it. Leaves errno unchanged.
inline int LeaveRoomForSelect(int fd) {
  if (fd < kSocketsBelow || fd >= FD_SETSIZE) return fd;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_SETSIZE);
  if (high < 0) return fd;  // the limit is too low for that
  close(fd);
  return high;
}

// Accepts the next connection of a non-blocking listener. Returns -1 and sets errno like accept4(2), with one
// difference: EMFILE and ENFILE mean that a connection is waiting. accept4() itself takes a descriptor before it looks,
// so without a free one it reports EMFILE also when no connection is waiting.
inline int AcceptOnListener(int listener) {
  const int fd = LeaveRoomForSelect(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
  const int error = errno;
  pollfd waiting{listener, POLLIN, 0};
  errno = poll(&waiting, 1, 0) == 0 ? EAGAIN : error;  // with a limit of 0, poll(2) fails too
  return -1;
}

}  // namespace weft

#endif  // BASE_HIGH_DESCRIPTOR_H_
