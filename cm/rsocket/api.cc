// The functions of rdma/rsocket.h: descriptors to sockets, errors to errno, nothing else.
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <vector>

#include "cm/export.h"
#include "cm/rsocket/datagram.h"
#include "cm/rsocket/event_poll.h"
#include "cm/rsocket/lingering.h"
#include "cm/rsocket/poll.h"
#include "cm/rsocket/stream.h"
#include "cm/rsocket/table.h"

using weft::cm::Return;
using weft::rsocket::Clock;
using weft::rsocket::Datagram;
using weft::rsocket::Deadline;
using weft::rsocket::EventPoll;
using weft::rsocket::Lingering;
using weft::rsocket::PollAll;
using weft::rsocket::Socket;
using weft::rsocket::Stream;
using weft::rsocket::Table;

namespace {

// The count that `call` gives, or -1 with errno from a negative one. Success leaves errno as it was, as with sockets:
// rstream asks it after a 0, and goes on if it finds the EAGAIN of a system call of ours.
template <typename Call>
ssize_t Counted(Call call) {
  const int before = errno;
  const ssize_t result = call();
  errno = result < 0 ? static_cast<int>(-result) : before;
  return result < 0 ? -1 : result;
}

// poll(2)'s time-out: milliseconds, negative for ever.
Deadline After(int milliseconds) {
  if (milliseconds < 0) return std::nullopt;
  return milliseconds == 0 ? Clock::time_point::min() : Clock::now() + std::chrono::milliseconds(milliseconds);
}

int CheckVector(const iovec* pieces, int count) {
  if (count < 0 || count > IOV_MAX) return EINVAL;
  uint64_t total = 0;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len > SSIZE_MAX) return EINVAL;
    total += pieces[i].iov_len;
    if (total > SSIZE_MAX) return EINVAL;
  }
  return 0;
}

// As the kernel hands out an address: as much as there is room for, and how long it is.
void StoreAddress(const sockaddr_storage& from, sockaddr* into, socklen_t* length) {
  if (into == nullptr || length == nullptr) return;
  socklen_t whole = 0;
  if (from.ss_family == AF_INET) whole = sizeof(sockaddr_in);
  if (from.ss_family == AF_INET6) whole = sizeof(sockaddr_in6);
  memcpy(into, &from, std::min(*length, whole));
  *length = whole;
}

ssize_t Receive(int fd, const iovec* pieces, int count, int flags, sockaddr_storage* from, int* out_flags) {
  const auto socket = Table::Process().Find(fd);
  if (socket == nullptr) return Return(EBADF);
  if (const int error = CheckVector(pieces, count); error != 0) return Return(error);
  return Counted([&] { return socket->Receive(pieces, count, flags, from, out_flags); });
}

ssize_t Send(int fd, const iovec* pieces, int count, int flags, const sockaddr* to, socklen_t length) {
  const auto socket = Table::Process().Find(fd);
  if (socket == nullptr) return Return(EBADF);
  if (const int error = CheckVector(pieces, count); error != 0) return Return(error);
  return Counted([&] { return socket->Send(pieces, count, flags, to, length); });
}

int Name(int fd, bool peer, sockaddr* address, socklen_t* length) {
  const auto socket = Table::Process().Find(fd);
  if (socket == nullptr) return Return(EBADF);
  if (address == nullptr || length == nullptr) return Return(EFAULT);
  sockaddr_storage name{};
  if (const int error = socket->Name(peer, &name); error != 0) return Return(error);
  StoreAddress(name, address, length);
  return 0;
}

}  // namespace

WEFT_CM_EXPORT int rsocket(int domain, int type, int protocol) {
  if (domain != AF_INET && domain != AF_INET6) return Return(EAFNOSUPPORT);
  const int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
  std::shared_ptr<Socket> socket;
  switch (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) {
    case SOCK_STREAM:
      if (protocol != 0 && protocol != IPPROTO_TCP) return Return(EPROTONOSUPPORT);
      socket = std::make_shared<Stream>(domain);
      break;
    case SOCK_DGRAM:
      if (protocol != 0 && protocol != IPPROTO_UDP) return Return(EPROTONOSUPPORT);
      socket = Datagram::Create(domain);
      if (socket == nullptr) return -1;
      break;
    default:
      return Return(ESOCKTNOSUPPORT);
  }
  socket->set_nonblocking((flags & SOCK_NONBLOCK) != 0);
  if (const int error = Table::Process().Add(socket, (flags & SOCK_CLOEXEC) != 0); error != 0) return Return(error);
  return socket->fd();
}

WEFT_CM_EXPORT int rbind(int fd, const sockaddr* address, socklen_t length) {
  const auto socket = Table::Process().Find(fd);
  return Return(socket != nullptr ? socket->Bind(address, length) : EBADF);
}

WEFT_CM_EXPORT int rlisten(int fd, int backlog) {
  const auto socket = Table::Process().Find(fd);
  return Return(socket != nullptr ? socket->Listen(backlog) : EBADF);
}

WEFT_CM_EXPORT int raccept(int fd, sockaddr* address, socklen_t* length) {
  const auto socket = Table::Process().Find(fd);
  if (socket == nullptr) return Return(EBADF);
  std::shared_ptr<Socket> accepted;
  if (const int error = socket->Accept(&accepted); error != 0) return Return(error);
  sockaddr_storage peer{};
  accepted->Name(/*peer=*/true, &peer);
  if (const int error = Table::Process().Add(accepted, /*close_on_exec=*/false); error != 0) return Return(error);
  StoreAddress(peer, address, length);
  return accepted->fd();
}

WEFT_CM_EXPORT int rconnect(int fd, const sockaddr* address, socklen_t length) {
  const auto socket = Table::Process().Find(fd);
  return Return(socket != nullptr ? socket->Connect(address, length) : EBADF);
}

WEFT_CM_EXPORT int rshutdown(int fd, int how) {
  const auto socket = Table::Process().Find(fd);
  return Return(socket != nullptr ? socket->Shutdown(how) : EBADF);
}

WEFT_CM_EXPORT int rclose(int fd) {
  const auto socket = Table::Process().Remove(fd);
  if (socket == nullptr) return Return(EventPoll::Close(fd) ? 0 : EBADF);
  if (!socket->Close()) Lingering::Process().Add(socket);
  return 0;
}

WEFT_CM_EXPORT ssize_t rrecvfrom(int fd, void* buffer, size_t length, int flags, sockaddr* from, socklen_t* from_length) {
  const iovec piece{buffer, std::min<size_t>(length, SSIZE_MAX)};
  sockaddr_storage source{};
  int out_flags = 0;
  const ssize_t received = Receive(fd, &piece, 1, flags, &source, &out_flags);
  if (received >= 0) StoreAddress(source, from, from_length);
  return received;
}

WEFT_CM_EXPORT ssize_t rrecv(int fd, void* buffer, size_t length, int flags) {
  return rrecvfrom(fd, buffer, length, flags, nullptr, nullptr);
}

WEFT_CM_EXPORT ssize_t rrecvmsg(int fd, msghdr* message, int flags) {
  if (message == nullptr) return Return(EFAULT);
  if (message->msg_iovlen > IOV_MAX) return Return(EMSGSIZE);
  sockaddr_storage source{};
  const ssize_t received = Receive(fd, message->msg_iov, static_cast<int>(message->msg_iovlen), flags, &source,
                                   &message->msg_flags);
  if (received < 0) return received;
  StoreAddress(source, static_cast<sockaddr*>(message->msg_name), &message->msg_namelen);
  message->msg_controllen = 0;  // there is no control information
  return received;
}

WEFT_CM_EXPORT ssize_t rread(int fd, void* buffer, size_t count) { return rrecv(fd, buffer, count, 0); }

WEFT_CM_EXPORT ssize_t rreadv(int fd, const iovec* pieces, int count) {
  int out_flags = 0;
  return Receive(fd, pieces, count, 0, nullptr, &out_flags);
}

WEFT_CM_EXPORT ssize_t rsendto(int fd, const void* buffer, size_t length, int flags, const sockaddr* to,
                               socklen_t to_length) {
  const iovec piece{const_cast<void*>(buffer), std::min<size_t>(length, SSIZE_MAX)};
  return Send(fd, &piece, 1, flags, to, to_length);
}

WEFT_CM_EXPORT ssize_t rsend(int fd, const void* buffer, size_t length, int flags) {
  return rsendto(fd, buffer, length, flags, nullptr, 0);
}

WEFT_CM_EXPORT ssize_t rsendmsg(int fd, const msghdr* message, int flags) {
  if (message == nullptr) return Return(EFAULT);
  if (message->msg_iovlen > IOV_MAX) return Return(EMSGSIZE);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return Return(EOPNOTSUPP);
  return Send(fd, message->msg_iov, static_cast<int>(message->msg_iovlen), flags,
              static_cast<const sockaddr*>(message->msg_name), message->msg_namelen);
}

WEFT_CM_EXPORT ssize_t rwrite(int fd, const void* buffer, size_t count) { return rsend(fd, buffer, count, 0); }

WEFT_CM_EXPORT ssize_t rwritev(int fd, const iovec* pieces, int count) { return Send(fd, pieces, count, 0, nullptr, 0); }

WEFT_CM_EXPORT int rpoll(pollfd* fds, nfds_t nfds, int timeout) {
  if (nfds > 0 && fds == nullptr) return Return(EFAULT);
  return static_cast<int>(Counted([&] { return PollAll(fds, nfds, After(timeout)); }));
}

// epoll_create1(2), epoll_ctl(2), epoll_wait(2) of rsockets and other descriptors, rdma-core 65. rclose closes one.
WEFT_CM_EXPORT int repoll_create(int flags) {
  if ((flags & ~EPOLL_CLOEXEC) != 0) return Return(EINVAL);
  int fd = -1;
  const int error = EventPoll::Create((flags & EPOLL_CLOEXEC) != 0, &fd);
  return error == 0 ? fd : Return(error);
}

WEFT_CM_EXPORT int repoll_ctl(int epfd, int op, int fd, epoll_event* event) {
  const auto poll = EventPoll::Find(epfd);
  if (poll == nullptr || fd < 0) return Return(EBADF);
  if (fd == epfd) return Return(EINVAL);
  if (op != EPOLL_CTL_DEL && event == nullptr) return Return(EFAULT);
  return Return(poll->Control(op, fd, event));
}

WEFT_CM_EXPORT int repoll_wait(int epfd, epoll_event* events, int maxevents, int timeout) {
  if (maxevents <= 0) return Return(EINVAL);
  if (events == nullptr) return Return(EFAULT);
  const auto poll = EventPoll::Find(epfd);
  if (poll == nullptr) return Return(EBADF);
  return static_cast<int>(Counted([&] { return poll->Wait(events, maxevents, After(timeout)); }));
}

// What poll(2) reports, as select(2) counts it: an end or an error makes readable, an error makes writable.
WEFT_CM_EXPORT int rselect(int nfds, fd_set* readfds, fd_set* writefds, fd_set* exceptfds, timeval* timeout) {
  if (nfds < 0 || nfds > FD_SETSIZE) return Return(EINVAL);
  Deadline deadline;
  if (timeout != nullptr) {
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0) return Return(EINVAL);
    const bool at_once = timeout->tv_sec == 0 && timeout->tv_usec == 0;
    deadline = at_once ? Clock::time_point::min()
                       : Clock::now() + std::chrono::seconds(timeout->tv_sec) + std::chrono::microseconds(timeout->tv_usec);
  }
  std::array<pollfd, FD_SETSIZE> fds;
  nfds_t count = 0;
  for (int fd = 0; fd < nfds; ++fd) {
    short events = 0;
    if (readfds != nullptr && FD_ISSET(fd, readfds)) events |= POLLIN;
    if (writefds != nullptr && FD_ISSET(fd, writefds)) events |= POLLOUT;
    if (exceptfds != nullptr && FD_ISSET(fd, exceptfds)) events |= POLLPRI;
    if (events != 0) fds[count++] = {fd, events, 0};
  }
  if (Counted([&] { return PollAll(fds.data(), count, deadline); }) < 0) return -1;
  for (nfds_t i = 0; i < count; ++i) {
    if ((fds[i].revents & POLLNVAL) != 0) return Return(EBADF);
  }
  int bits = 0;
  for (nfds_t i = 0; i < count; ++i) {
    const auto keep = [&](fd_set* set, short asked, short shows) {
      if (set == nullptr || (fds[i].events & asked) == 0) return;
      if ((fds[i].revents & shows) != 0) {
        ++bits;
      } else {
        FD_CLR(fds[i].fd, set);
      }
    };
    keep(readfds, POLLIN, POLLIN | POLLHUP | POLLERR);
    keep(writefds, POLLOUT, POLLOUT | POLLERR);
    keep(exceptfds, POLLPRI, POLLPRI);
  }
  return bits;
}

WEFT_CM_EXPORT int rgetpeername(int fd, sockaddr* address, socklen_t* length) {
  return Name(fd, /*peer=*/true, address, length);
}

WEFT_CM_EXPORT int rgetsockname(int fd, sockaddr* address, socklen_t* length) {
  return Name(fd, /*peer=*/false, address, length);
}

WEFT_CM_EXPORT int rsetsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  const auto socket = Table::Process().Find(fd);
  return Return(socket != nullptr ? socket->SetOption(level, name, value, length) : EBADF);
}

WEFT_CM_EXPORT int rgetsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  const auto socket = Table::Process().Find(fd);
  return Return(socket != nullptr ? socket->GetOption(level, name, value, length) : EBADF);
}

WEFT_CM_EXPORT int rfcntl(int fd, int command, ...) {
  const auto socket = Table::Process().Find(fd);
  if (socket == nullptr) return Return(EBADF);
  va_list arguments;
  va_start(arguments, command);
  const int argument = va_arg(arguments, int);
  va_end(arguments);
  switch (command) {
    case F_GETFL:
      return O_RDWR | (socket->nonblocking() ? O_NONBLOCK : 0);
    case F_SETFL:
      socket->set_nonblocking((argument & O_NONBLOCK) != 0);
      return 0;
    case F_GETFD:
      return fcntl(fd, F_GETFD);
    case F_SETFD:
      return fcntl(fd, F_SETFD, argument);
    default:
      return Return(EINVAL);
  }
}

WEFT_CM_EXPORT off_t riomap(int fd, void* buffer, size_t length, int protection, int flags, off_t offset) {
  const auto socket = Table::Process().Find(fd);
  if (socket == nullptr) return Return(EBADF);
  if (flags != 0) return Return(EINVAL);
  return Counted([&] { return socket->Map(buffer, length, protection, offset); });
}

WEFT_CM_EXPORT int riounmap(int fd, void* buffer, size_t length) {
  const auto socket = Table::Process().Find(fd);
  return Return(socket != nullptr ? socket->Unmap(buffer, length) : EBADF);
}

WEFT_CM_EXPORT size_t riowrite(int fd, const void* buffer, size_t count, off_t offset, int flags) {
  const auto socket = Table::Process().Find(fd);
  if (socket == nullptr) return static_cast<size_t>(Return(EBADF));
  return static_cast<size_t>(Counted([&] { return socket->WriteMapped(buffer, count, offset, flags); }));
}
