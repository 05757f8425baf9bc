// What Weft is compared with: the same exchanges over a TCP socket, as a careful program would write them.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "bench/endpoint.h"

namespace weft::bench {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

sockaddr_storage Resolve(const std::string& address, uint16_t port, socklen_t* length) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    throw Failure("not a numeric address: " + address);
  }
  sockaddr_storage storage{};
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen, reinterpret_cast<char*>(&storage));
  *length = found->ai_addrlen;
  freeaddrinfo(found);
  return storage;
}

Socket MakeSocket(int family) {
  Socket made(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.fd() < 0) Fail("socket", errno);
  return made;
}

void SetNoDelay(int fd) {
  const int one = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) Fail("TCP_NODELAY", errno);
}

// `flags`: MSG_DONTWAIT to spin, 0 to block.
void SendAll(int fd, const char* bytes, size_t length, int flags) {
  while (length > 0) {
    const ssize_t sent = send(fd, bytes, length, flags | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) Fail("send", errno);
    if (sent > 0) bytes += sent, length -= static_cast<size_t>(sent);
  }
}

void ReceiveAll(int fd, char* bytes, size_t length, int flags) {
  while (length > 0) {
    const ssize_t received = recv(fd, bytes, length, flags);
    if (received == 0) throw Failure("the peer closed the connection");
    if (received < 0 && errno != EAGAIN) Fail("recv", errno);
    if (received > 0) bytes += received, length -= static_cast<size_t>(received);
  }
}

class RawTcpEndpoint : public Endpoint {
 public:
  uint16_t Listen(const Shape& shape) override {
    Prepare(shape);
    socklen_t length = 0;
    sockaddr_storage address = Resolve(shape.address, 0, &length);
    listener_ = MakeSocket(address.ss_family);
    if (bind(listener_.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0) Fail("bind " + shape.address, errno);
    if (listen(listener_.fd(), SOMAXCONN) != 0) Fail("listen", errno);
    if (getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) Fail("getsockname", errno);
    // The port stands at the same place for both families.
    return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  }

  void Accept() override {
    for (int64_t i = 0; i < shape_.connections; ++i) {
      Socket accepted(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (accepted.fd() < 0) Fail("accept", errno);
      SetNoDelay(accepted.fd());
      sockets_.push_back(std::move(accepted));
    }
  }

  void Connect(const Shape& shape, uint16_t port) override {
    Prepare(shape);
    socklen_t length = 0;
    const sockaddr_storage address = Resolve(shape.address, port, &length);
    for (int64_t i = 0; i < shape_.connections; ++i) {
      Socket made = MakeSocket(address.ss_family);
      if (connect(made.fd(), reinterpret_cast<const sockaddr*>(&address), length) != 0) Fail("connect", errno);
      SetNoDelay(made.fd());
      sockets_.push_back(std::move(made));
    }
  }

  void Close() override {
    sockets_.clear();
    listener_ = Socket(-1);
  }

  Sample PingPong(Role role, const Job& job) override {
    const int fd = Connection();
    const int flags = job.wait == Wait::kSpin ? MSG_DONTWAIT : 0;
    const size_t bytes = static_cast<size_t>(job.bytes);
    if (role == Role::kInitiator) {
      return TimeRoundTrips(job, [&](int64_t) {
        SendAll(fd, out_.data(), bytes, flags);
        ReceiveAll(fd, in_.data(), bytes, flags);
      });
    }
    for (int64_t i = 0; i < job.warm_up + job.count; ++i) {
      ReceiveAll(fd, in_.data(), bytes, flags);
      SendAll(fd, out_.data(), bytes, flags);
    }
    return {};
  }

  // Blocks at both ends, whatever the job says: a stream has nothing to gain from spinning.
  Sample OneWay(Role role, const Job& job) override {
    const int fd = Connection();
    const int64_t total = job.bytes * job.count;
    const Clock::time_point start = Clock::now();
    if (role == Role::kInitiator) {
      const int64_t block = job.bytes * job.list;
      for (int64_t left = total; left > 0; left -= block) SendAll(fd, out_.data(), Length(left, block), 0);
      ReceiveAll(fd, in_.data(), 1, 0);
    } else {
      // Whoever streams small messages reads many at once.
      const int64_t block = job.bytes < 4096 ? 65536 : job.bytes;
      for (int64_t left = total; left > 0;) left -= ReceiveSome(fd, Length(left, block));
      SendAll(fd, out_.data(), 1, 0);
    }
    return {.elapsed = Seconds(Clock::now() - start)};
  }

 private:
  static size_t Length(int64_t left, int64_t block) { return static_cast<size_t>(std::min(left, block)); }

  void Prepare(const Shape& shape) {
    shape_ = shape;
    const size_t size = static_cast<size_t>(std::max<int64_t>(shape.buffer, 65536));
    out_.assign(size, 'w');
    in_.assign(size, 0);
  }

  int Connection() const {
    if (sockets_.empty()) throw Failure("no connection is open");
    return sockets_.front().fd();
  }

  ssize_t ReceiveSome(int fd, size_t length) {
    const ssize_t received = recv(fd, in_.data(), length, 0);
    if (received < 0) Fail("recv", errno);
    if (received == 0) throw Failure("the peer closed the connection");
    return received;
  }

  Shape shape_;
  Socket listener_{-1};
  std::vector<Socket> sockets_;
  std::vector<char> out_, in_;
};

}  // namespace

std::unique_ptr<Endpoint> MakeRawTcpEndpoint() { return std::make_unique<RawTcpEndpoint>(); }

}  // namespace weft::bench
