#ifndef BASE_HIGH_DESCRIPTOR_H_
#define BASE_HIGH_DESCRIPTOR_H_

#include <fcntl.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace weft {

// A program that uses select(2) can name no descriptor from FD_SETSIZE (1,024) on: FD_SET would write beyond its set. With an adapter it could
// have thousands of connections all the same. So the RNIC's sockets stay out of the upper half of those numbers, which are the program's.
inline constexpr int kSocketsBelow = FD_SETSIZE / 2;

// `fd`, a socket that was just opened, or its duplicate above FD_SETSIZE in its stead. Takes -1 for an answer; leaves errno alone.
inline int LeaveRoomForSelect(int fd) {
  if (fd < kSocketsBelow || fd >= FD_SETSIZE) return fd;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_SETSIZE);
  if (high < 0) return fd;  // the limit does not reach so far
  close(fd);
  return high;
}

// The next connection of a listener that does not block. -1 and errno, as accept4(2); but EMFILE and ENFILE say that a connection waits: the
// kernel takes a descriptor before it looks, so that without one accept4() says so of a listener to which nobody came.
inline int AcceptOnListener(int listener) {
  const int fd = LeaveRoomForSelect(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
  const int error = errno;
  pollfd waiting{listener, POLLIN, 0};
  errno = poll(&waiting, 1, 0) == 0 ? EAGAIN : error;  // not even poll(2) works with a limit of 0
  return -1;
}

}  // namespace weft

#endif  // BASE_HIGH_DESCRIPTOR_H_
