#include "pmi/client/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/deadline.h"

namespace weft::pmi {
namespace {

constexpr std::chrono::seconds kHandshakeLimit{10};

}  // namespace

Socket::~Socket() { close(fd_); }

void Socket::Await(short events) {
  pollfd entry{fd_, events, 0};
  poll(&entry, 1, -1);
}

std::string Socket::SendRaw(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == ENOTSOCK) count = write(fd_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      Await(POLLOUT);
    } else if (errno != EINTR) {
      return std::strerror(errno);
    }
  }
  return {};
}

Result<std::string, PmiError> Socket::ReceiveRaw() {
  for (;;) {
    char block[4096];
    const ssize_t count = read(fd_, block, sizeof(block));
    if (count >= 0) return std::string(block, static_cast<size_t>(count));
    if (errno == ECONNRESET) return std::string();  // the launcher is gone, and there was something that it had not read
    if (errno == EAGAIN) {
      Await(POLLIN);
    } else if (errno != EINTR) {
      return PmiError{std::strerror(errno)};
    }
  }
}

std::string Socket::Send(std::string_view bytes) {
  const std::lock_guard sending(sending_);
  if (tls_ == nullptr) return SendRaw(bytes);
  std::string wire;
  {
    const std::lock_guard lock(tls_mutex_);
    tls_->Write(bytes);
    wire = tls_->TakeWire();
  }
  return SendRaw(wire);
}

std::string Socket::SendWire() {
  const std::lock_guard sending(sending_);
  std::string wire;
  {
    const std::lock_guard lock(tls_mutex_);
    wire = tls_->TakeWire();
  }
  return SendRaw(wire);
}

Result<std::string, PmiError> Socket::Receive() { return tls_ == nullptr ? ReceiveRaw() : ReceiveSecured(); }

Result<std::string, PmiError> Socket::ReceiveSecured() {
  for (;;) {
    {
      const std::lock_guard lock(tls_mutex_);
      std::string plain = tls_->TakePlain();
      if (!plain.empty() || tls_->closed()) return plain;
      if (!tls_->error().empty()) return PmiError{"it " + tls_->error()};
    }
    auto wire = ReceiveRaw();
    if (!wire || wire->empty()) return wire;
    {
      const std::lock_guard lock(tls_mutex_);
      tls_->Append(*wire);
    }
    (void)SendWire();  // whether the other end takes it shows in what it says next
  }
}

std::string Socket::Handshake() {
  if (tls_ == nullptr) return {};
  const auto deadline = std::chrono::steady_clock::now() + kHandshakeLimit;
  for (;;) {
    if (std::string problem = SendWire(); !problem.empty()) return "TLS: " + problem;
    if (tls_->ready()) return {};
    if (!tls_->error().empty()) return "it " + tls_->error();
    pollfd entry{fd_, POLLIN, 0};
    const int ready = poll(&entry, 1, MillisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return "it did not complete the TLS handshake within " + std::to_string(kHandshakeLimit.count()) + " s";
    const auto wire = ReceiveRaw();
    if (!wire) return wire.error().message;
    if (wire->empty()) return "it closed the connection during the TLS handshake; does it have the same secret?";
    tls_->Append(*wire);
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
