#include "pmi/client/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::pmi {

Socket::~Socket() { close(fd_); }

void Socket::Await(short events) {
  pollfd entry{fd_, events, 0};
  poll(&entry, 1, -1);
}

int Socket::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == ENOTSOCK) count = write(fd_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      Await(POLLOUT);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

Result<std::string, int> Socket::Receive() {
  for (;;) {
    char block[4096];
    const ssize_t count = read(fd_, block, sizeof(block));
    if (count >= 0) return std::string(block, static_cast<size_t>(count));
    if (errno == ECONNRESET) return std::string();  // the launcher is gone, and there was something that it had not read
    if (errno == EAGAIN) {
      Await(POLLIN);
    } else if (errno != EINTR) {
      return errno;
    }
  }
}

Result<int, PmiError> Dial(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return PmiError{"PMI_PORT names the host " + host + ", which cannot be resolved: " + gai_strerror(error)};
  }
  int last_error = ECONNREFUSED;
  int fd = -1;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    fd = socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, entry->ai_addr, entry->ai_addrlen) == 0) break;
    last_error = errno;
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  if (fd < 0) return PmiError{"cannot connect to PMI_PORT=" + host + ":" + port + ": " + std::strerror(last_error)};
  // A host that is gone ends the connection within half a minute, as with proxies.
  const int on = 1, idle_seconds = 10, interval_seconds = 5, probes = 4;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  return fd;
}

}  // namespace weft::pmi
