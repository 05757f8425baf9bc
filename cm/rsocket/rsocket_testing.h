#ifndef CM_RSOCKET_RSOCKET_TESTING_H_
#define CM_RSOCKET_RSOCKET_TESTING_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

// Steps that the tests of rsockets share. They EXPECT success, and return -1 on failure.
namespace weft::rsocket_api {

inline sockaddr_in Loopback(uint16_t port_network_order = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port_network_order;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { Reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  operator int() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) rclose(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

inline Fd Listener(sockaddr_in* address) {
  Fd fd(::rsocket(AF_INET, SOCK_STREAM, 0));
  EXPECT_GE(fd, 0);
  *address = Loopback();
  EXPECT_EQ(rbind(fd, reinterpret_cast<sockaddr*>(address), sizeof *address), 0);
  EXPECT_EQ(rlisten(fd, 8), 0);
  socklen_t length = sizeof *address;
  EXPECT_EQ(rgetsockname(fd, reinterpret_cast<sockaddr*>(address), &length), 0);
  EXPECT_EQ(length, sizeof *address);
  EXPECT_NE(address->sin_port, 0);
  return fd;
}

inline int ConnectTo(int fd, const sockaddr_in& address) {
  return rconnect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

// Both ends of a connection. `prepare(fd)` may set options before they connect.
struct Pair {
  Fd client, server;
};

template <typename Prepare>
Pair Connected(Prepare prepare) {
  sockaddr_in address;
  Fd listener = Listener(&address);
  prepare(listener);
  Pair pair;
  pair.client = Fd(::rsocket(AF_INET, SOCK_STREAM, 0));
  prepare(pair.client);
  auto connecting = std::async(std::launch::async, [&] { return ConnectTo(pair.client, address); });
  pair.server = Fd(raccept(listener, nullptr, nullptr));
  EXPECT_GE(pair.server, 0);
  EXPECT_EQ(connecting.get(), 0);
  return pair;
}

inline Pair Connected() {
  return Connected([](int) {});
}

inline short PollOne(int fd, short events, int timeout_ms) {
  pollfd one{fd, events, 0};
  const int ready = rpoll(&one, 1, timeout_ms);
  EXPECT_GE(ready, 0);
  EXPECT_EQ(ready, one.revents != 0);
  return one.revents;
}

// Bytes that identify their position.
inline std::vector<uint8_t> Pattern(size_t length, uint32_t seed = 1) {
  std::vector<uint8_t> bytes(length);
  for (auto& byte : bytes) {
    seed = seed * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(seed >> 24);
  }
  return bytes;
}

inline bool SendAll(int fd, const std::vector<uint8_t>& bytes) {
  return rsend(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

inline std::vector<uint8_t> ReceiveAll(int fd, size_t length) {
  std::vector<uint8_t> bytes(length);
  const ssize_t got = rrecv(fd, bytes.data(), length, MSG_WAITALL);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

}  // namespace weft::rsocket_api

#endif  // CM_RSOCKET_RSOCKET_TESTING_H_
