// The socket calls of a TCP program, sent to rsockets where the descriptor is one.
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "cm/rspreload/calls.h"
#include "cm/rspreload/descriptors.h"
#include "cm/rspreload/epoll.h"

using weft::rspreload::Attach;
using weft::rspreload::Detach;
using weft::rspreload::IsOwner;
using weft::rspreload::kDead;
using weft::rspreload::kNone;
using weft::rspreload::Lookup;
using weft::rspreload::Rsockets;
using weft::rspreload::Share;

namespace {

// The adapter below makes TCP sockets of its own.
bool IsOurs(const void* caller) {
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  return strstr(info.dli_fname, "libibverbs.so") != nullptr || strstr(info.dli_fname, "librdmacm.so") != nullptr;
}

int Dead() {
  errno = ENOTCONN;
  return -1;
}

int CloseRsocket(int rsocket) {
  Rsockets::Get()->close(rsocket);
  return 0;
}

// What dup(2) and its kin made of `from`.
int Duplicated(int made, int from) {
  const int rsocket = Lookup(from);
  if (made >= 0 && rsocket >= 0) Share(made, rsocket);
  return made;
}

int AcceptOn(int rsocket, sockaddr* address, socklen_t* length, int flags) {
  const int accepted = Rsockets::Get()->accept(rsocket, address, length);
  if (accepted < 0) return -1;
  if ((flags & SOCK_NONBLOCK) != 0) Rsockets::Get()->fcntl(accepted, F_SETFL, O_NONBLOCK);
  const int fd = Attach(accepted, (flags & SOCK_CLOEXEC) != 0);
  if (fd < 0) CloseRsocket(accepted);
  return fd;
}

ssize_t ReceiveFrom(int rsocket, void* buffer, size_t length, int flags) {
  return Rsockets::Get()->recvfrom(rsocket, buffer, length, flags, nullptr, nullptr);
}

// A file, or what else can be read, through memory: rsockets send from their own buffers.
ssize_t SendFile(int rsocket, int in, off_t* offset, size_t count) {
  char buffer[16384];
  ssize_t sent = 0;
  while (static_cast<size_t>(sent) < count) {
    const size_t want = std::min(count - static_cast<size_t>(sent), sizeof buffer);
    const off_t at = offset != nullptr ? *offset : lseek(in, 0, SEEK_CUR);
    if (at < 0) return sent > 0 ? sent : -1;
    const ssize_t got = pread(in, buffer, want, at);
    if (got <= 0) return sent > 0 ? sent : got;
    const ssize_t part = Rsockets::Get()->sendto(rsocket, buffer, static_cast<size_t>(got), 0, nullptr, 0);
    if (part < 0) return sent > 0 ? sent : -1;
    if (offset != nullptr) {
      *offset = at + part;
    } else {
      lseek(in, at + part, SEEK_SET);
    }
    sent += part;
    if (part < got) break;
  }
  return sent;
}

}  // namespace

// Of each call: the rsocket's function if the descriptor is one, else the C library's.
#define DISPATCH(fd, name, ...)                      \
  if (const int rsocket = Lookup(fd); rsocket != kNone) { \
    if (rsocket == kDead) return Dead();             \
    return Rsockets::Get()->name(rsocket, __VA_ARGS__); \
  }

WEFT_PRELOAD_EXPORT int socket(int domain, int type, int protocol) {
  WEFT_NEXT(socket);
  const bool is_tcp = (domain == AF_INET || domain == AF_INET6) &&
                      (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
                      (protocol == 0 || protocol == IPPROTO_TCP);
  if (!is_tcp || IsOurs(__builtin_return_address(0))) return next(domain, type, protocol);
  const Rsockets* const rsockets = Rsockets::Get();
  if (rsockets == nullptr) return next(domain, type, protocol);
  const int rsocket = rsockets->socket(domain, type | SOCK_CLOEXEC, protocol);
  if (rsocket < 0) return -1;
  const int fd = Attach(rsocket, (type & SOCK_CLOEXEC) != 0);
  if (fd < 0) CloseRsocket(rsocket);
  return fd;
}

WEFT_PRELOAD_EXPORT int bind(int fd, const sockaddr* address, socklen_t length) {
  WEFT_NEXT(bind);
  DISPATCH(fd, bind, address, length)
  return next(fd, address, length);
}

WEFT_PRELOAD_EXPORT int listen(int fd, int backlog) {
  WEFT_NEXT(listen);
  DISPATCH(fd, listen, backlog)
  return next(fd, backlog);
}

WEFT_PRELOAD_EXPORT int accept(int fd, sockaddr* address, socklen_t* length) {
  WEFT_NEXT(accept);
  const int rsocket = Lookup(fd);
  if (rsocket == kNone) return next(fd, address, length);
  return rsocket == kDead ? Dead() : AcceptOn(rsocket, address, length, 0);
}

WEFT_PRELOAD_EXPORT int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  WEFT_NEXT(accept4);
  const int rsocket = Lookup(fd);
  if (rsocket == kNone) return next(fd, address, length, flags);
  return rsocket == kDead ? Dead() : AcceptOn(rsocket, address, length, flags);
}

WEFT_PRELOAD_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  WEFT_NEXT(connect);
  DISPATCH(fd, connect, address, length)
  return next(fd, address, length);
}

WEFT_PRELOAD_EXPORT int shutdown(int fd, int how) {
  WEFT_NEXT(shutdown);
  DISPATCH(fd, shutdown, how)
  return next(fd, how);
}

WEFT_PRELOAD_EXPORT int close(int fd) {
  WEFT_NEXT(close);
  const int rsocket = IsOwner() ? Lookup(fd) : kNone;
  if (rsocket != kNone && Detach(fd)) CloseRsocket(rsocket);
  if (rsocket == kNone && IsOwner()) weft::rspreload::ForgetEpollSet(fd);
  return next(fd);
}

// Whoever gets the number of a descriptor that was closed in this way must not be taken for the rsocket.
WEFT_PRELOAD_EXPORT int close_range(unsigned first, unsigned last, int flags) {
  WEFT_NEXT(close_range);
  if (first <= last && (flags & CLOSE_RANGE_CLOEXEC) == 0 && IsOwner()) {
    for (unsigned fd = first; fd <= last && fd < weft::rspreload::kMost; ++fd) {
      const int rsocket = Lookup(static_cast<int>(fd));
      if (rsocket != kNone && Detach(static_cast<int>(fd))) CloseRsocket(rsocket);
      if (rsocket == kNone) weft::rspreload::ForgetEpollSet(static_cast<int>(fd));
    }
  }
  return next(first, last, flags);
}

WEFT_PRELOAD_EXPORT void closefrom(int first) { close_range(static_cast<unsigned>(std::max(first, 0)), ~0u, 0); }

WEFT_PRELOAD_EXPORT int dup(int fd) {
  WEFT_NEXT(dup);
  return Duplicated(next(fd), fd);
}

WEFT_PRELOAD_EXPORT int dup3(int fd, int to, int flags) {
  WEFT_NEXT(dup3);
  const int replaced = fd != to ? Lookup(to) : kNone;
  const int made = next(fd, to, flags);
  if (made < 0) return made;
  if (replaced != kNone && Detach(to)) CloseRsocket(replaced);
  return Duplicated(made, fd);
}

WEFT_PRELOAD_EXPORT int dup2(int fd, int to) {
  WEFT_NEXT(dup2);
  return fd == to ? next(fd, to) : dup3(fd, to, 0);
}

// --- data ---

WEFT_PRELOAD_EXPORT ssize_t recv(int fd, void* buffer, size_t length, int flags) {
  WEFT_NEXT(recv);
  DISPATCH(fd, recvfrom, buffer, length, flags, nullptr, nullptr)
  return next(fd, buffer, length, flags);
}

// The calls of programs that were built with _FORTIFY_SOURCE: they end where there is less room than they ask for.
extern "C" [[noreturn]] void __chk_fail();

WEFT_PRELOAD_EXPORT ssize_t __recv_chk(int fd, void* buffer, size_t length, size_t room, int flags) {
  if (length > room) __chk_fail();
  return recv(fd, buffer, length, flags);
}

WEFT_PRELOAD_EXPORT ssize_t recvfrom(int fd, void* buffer, size_t length, int flags, sockaddr* from,
                                     socklen_t* from_length) {
  WEFT_NEXT(recvfrom);
  DISPATCH(fd, recvfrom, buffer, length, flags, from, from_length)
  return next(fd, buffer, length, flags, from, from_length);
}

WEFT_PRELOAD_EXPORT ssize_t __recvfrom_chk(int fd, void* buffer, size_t length, size_t room, int flags, sockaddr* from,
                                           socklen_t* from_length) {
  if (length > room) __chk_fail();
  return recvfrom(fd, buffer, length, flags, from, from_length);
}

WEFT_PRELOAD_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  WEFT_NEXT(recvmsg);
  DISPATCH(fd, recvmsg, message, flags)
  return next(fd, message, flags);
}

WEFT_PRELOAD_EXPORT ssize_t read(int fd, void* buffer, size_t count) {
  WEFT_NEXT(read);
  if (const int rsocket = Lookup(fd); rsocket != kNone) {
    return rsocket == kDead ? Dead() : ReceiveFrom(rsocket, buffer, count, 0);
  }
  return next(fd, buffer, count);
}

WEFT_PRELOAD_EXPORT ssize_t __read_chk(int fd, void* buffer, size_t count, size_t room) {
  if (count > room) __chk_fail();
  return read(fd, buffer, count);
}

WEFT_PRELOAD_EXPORT ssize_t readv(int fd, const iovec* pieces, int count) {
  WEFT_NEXT(readv);
  DISPATCH(fd, readv, pieces, count)
  return next(fd, pieces, count);
}

WEFT_PRELOAD_EXPORT ssize_t send(int fd, const void* buffer, size_t length, int flags) {
  WEFT_NEXT(send);
  DISPATCH(fd, sendto, buffer, length, flags, nullptr, 0)
  return next(fd, buffer, length, flags);
}

WEFT_PRELOAD_EXPORT ssize_t sendto(int fd, const void* buffer, size_t length, int flags, const sockaddr* to,
                                   socklen_t to_length) {
  WEFT_NEXT(sendto);
  DISPATCH(fd, sendto, buffer, length, flags, to, to_length)
  return next(fd, buffer, length, flags, to, to_length);
}

WEFT_PRELOAD_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  WEFT_NEXT(sendmsg);
  DISPATCH(fd, sendmsg, message, flags)
  return next(fd, message, flags);
}

WEFT_PRELOAD_EXPORT ssize_t write(int fd, const void* buffer, size_t count) {
  WEFT_NEXT(write);
  DISPATCH(fd, sendto, buffer, count, 0, nullptr, 0)
  return next(fd, buffer, count);
}

WEFT_PRELOAD_EXPORT ssize_t writev(int fd, const iovec* pieces, int count) {
  WEFT_NEXT(writev);
  DISPATCH(fd, writev, pieces, count)
  return next(fd, pieces, count);
}

WEFT_PRELOAD_EXPORT ssize_t sendfile(int out, int in, off_t* offset, size_t count) {
  WEFT_NEXT(sendfile);
  const int rsocket = Lookup(out);
  if (rsocket == kNone) return next(out, in, offset, count);
  return rsocket == kDead ? Dead() : SendFile(rsocket, in, offset, count);
}

WEFT_PRELOAD_EXPORT ssize_t sendfile64(int out, int in, off64_t* offset, size_t count) {
  static_assert(sizeof(off_t) == sizeof(off64_t));
  return sendfile(out, in, offset, count);
}

// --- names and options ---

WEFT_PRELOAD_EXPORT int getpeername(int fd, sockaddr* address, socklen_t* length) {
  WEFT_NEXT(getpeername);
  DISPATCH(fd, getpeername, address, length)
  return next(fd, address, length);
}

WEFT_PRELOAD_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* length) {
  WEFT_NEXT(getsockname);
  DISPATCH(fd, getsockname, address, length)
  return next(fd, address, length);
}

WEFT_PRELOAD_EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  WEFT_NEXT(setsockopt);
  DISPATCH(fd, setsockopt, level, name, value, length)
  return next(fd, level, name, value, length);
}

WEFT_PRELOAD_EXPORT int getsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  WEFT_NEXT(getsockopt);
  DISPATCH(fd, getsockopt, level, name, value, length)
  return next(fd, level, name, value, length);
}

namespace {

int Fcntl(int fd, int command, void* argument) {
  WEFT_NEXT(fcntl);
  const int rsocket = Lookup(fd);
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return Duplicated(next(fd, command, argument), fd);
    case F_GETFL:
    case F_SETFL:
      if (rsocket == kDead) return Dead();
      if (rsocket != kNone) {
        return Rsockets::Get()->fcntl(rsocket, command, static_cast<int>(reinterpret_cast<intptr_t>(argument)));
      }
      [[fallthrough]];
    default:
      return next(fd, command, argument);  // of the descriptor, not of what is behind it
  }
}

}  // namespace

WEFT_PRELOAD_EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return Fcntl(fd, command, argument);
}

WEFT_PRELOAD_EXPORT int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return Fcntl(fd, command, argument);
}

WEFT_PRELOAD_EXPORT int ioctl(int fd, unsigned long request, ...) {
  WEFT_NEXT(ioctl);
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const int rsocket = Lookup(fd);
  if (rsocket == kNone) return next(fd, request, argument);
  if (rsocket == kDead) return Dead();
  switch (request) {
    case FIONBIO:
      return Rsockets::Get()->fcntl(rsocket, F_SETFL, *static_cast<int*>(argument) != 0 ? O_NONBLOCK : 0);
    case FIOCLEX:
    case FIONCLEX:
      return next(fd, request, argument);
    default:
      errno = ENOTTY;
      return -1;
  }
}
