// Datagram rsockets as a program uses them.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "cm/rsocket/rsocket_testing.h"

namespace weft::rsocket_api {
namespace {

constexpr int kPatienceMs = 10'000;

class RsocketDatagram : public testing::Test {
 protected:
  static sockaddr_in NameOf(int fd) {
    sockaddr_in name{};
    socklen_t length = sizeof name;
    EXPECT_EQ(rgetsockname(fd, reinterpret_cast<sockaddr*>(&name), &length), 0);
    return name;
  }
  static Fd Bound() {
    Fd fd(::rsocket(AF_INET, SOCK_DGRAM, 0));
    EXPECT_GE(fd, 0) << strerror(errno);
    const sockaddr_in any = Loopback();
    EXPECT_EQ(rbind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    return fd;
  }
  static ssize_t SendTo(int fd, const std::string& text, const sockaddr_in& to, int flags = 0) {
    return rsendto(fd, text.data(), text.size(), flags, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  // Whether a thread of this process waits in poll(2), or comes to, which is where an rsocket's program sleeps.
  static bool AwaitPoll(pid_t thread) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (std::chrono::steady_clock::now() < limit) {
      long call = -1;
      std::ifstream("/proc/self/task/" + std::to_string(thread) + "/syscall") >> call;  // "running" while it does
#ifdef SYS_poll
      if (call == SYS_poll) return true;
#endif
      if (call == SYS_ppoll) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
  }
  static bool Readable(int fd, int timeout = kPatienceMs) {
    pollfd ready{fd, POLLIN, 0};
    return rpoll(&ready, 1, timeout) == 1 && (ready.revents & POLLIN) != 0;
  }
  // The next datagram, which must come in time.
  static std::string Take(int fd, sockaddr_in* from = nullptr, size_t room = 1 << 16) {
    if (!Readable(fd)) return "(nothing)";
    std::string text(room, '\0');
    sockaddr_in source{};
    socklen_t length = sizeof source;
    const ssize_t count = rrecvfrom(fd, text.data(), room, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&source), &length);
    if (count < 0) return std::string("(error ") + strerror(errno) + ")";
    if (from != nullptr) *from = source;
    text.resize(static_cast<size_t>(count));
    return text;
  }
  static bool Same(const sockaddr_in& a, const sockaddr_in& b) {
    return a.sin_family == b.sin_family && a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
  }

  Fd one_ = Bound(), two_ = Bound();
};

TEST_F(RsocketDatagram, GoThereAndBackAndSayFromWhere) {
  const sockaddr_in name_of_one = NameOf(one_), name_of_two = NameOf(two_);
  for (int i = 0; i < 200; ++i) {
    const std::string text = "datagram " + std::to_string(i);
    sockaddr_in from{};
    ASSERT_EQ(SendTo(one_, text, name_of_two), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(Take(two_, &from), text);
    EXPECT_TRUE(Same(from, name_of_one));
    ASSERT_EQ(SendTo(two_, text + " back", from), static_cast<ssize_t>(text.size() + 5));
    ASSERT_EQ(Take(one_, &from), text + " back");
    EXPECT_TRUE(Same(from, name_of_two));
  }
}

TEST_F(RsocketDatagram, OfEveryLength) {
  const sockaddr_in to = NameOf(two_);
  // One MTU of the loopback device is 4096; what is longer goes over UDP.
  for (size_t length : {0, 1, 63, 64, 65, 4000, 4071, 4072, 4073, 4088, 4089, 4096, 5000, 65000, 65479}) {
    std::string text(length, '\0');
    for (size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i * 7 + length);
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(SendTo(one_, text, to), static_cast<ssize_t>(length)) << strerror(errno);
      ASSERT_EQ(Take(two_), text) << length;
      ASSERT_EQ(SendTo(two_, "got it", NameOf(one_)), 6);
      ASSERT_EQ(Take(one_), "got it");
    }
  }
  EXPECT_EQ(SendTo(one_, std::string(65480, 'x'), to), -1);
  EXPECT_EQ(errno, EMSGSIZE);
}

// Short ones go another way than long ones.
TEST_F(RsocketDatagram, WhatWaitsIsReadInOrder) {
  const int room = 1 << 20;
  ASSERT_EQ(rsetsockopt(two_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
  const sockaddr_in to = NameOf(two_);
  ASSERT_EQ(SendTo(one_, "hello", to), 5);
  ASSERT_EQ(Take(two_), "hello");  // the queue pair is known
  const std::string text(5000, 'l');
  int most = 0;
  std::ifstream("/proc/sys/net/core/rmem_max") >> most;
  const int count = most >= room ? 80 : 20;  // as many as the kernel lets wait
  for (int i = 0; i < count; ++i) ASSERT_EQ(SendTo(one_, text, to), 5000);
  ASSERT_EQ(SendTo(one_, "short", to), 5);
  for (int i = 0; i < count; ++i) ASSERT_EQ(Take(two_), text) << i;
  EXPECT_EQ(Take(two_), "short");
}

TEST_F(RsocketDatagram, CutWhereThereIsNoRoom) {
  ASSERT_EQ(SendTo(one_, "longer than that", NameOf(two_)), 16);
  ASSERT_TRUE(Readable(two_));
  char buffer[6];
  iovec piece{buffer, sizeof buffer};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  ASSERT_EQ(rrecvmsg(two_, &message, MSG_PEEK), 6);
  EXPECT_NE(message.msg_flags & MSG_TRUNC, 0);
  ASSERT_EQ(rrecvmsg(two_, &message, MSG_TRUNC), 16) << "the whole length, as recv(2)";
  EXPECT_EQ(std::string(buffer, 6), "longer");
  EXPECT_EQ(rrecv(two_, buffer, sizeof buffer, MSG_DONTWAIT), -1) << "the rest is gone";
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(RsocketDatagram, ConnectedHearsItsPeerAlone) {
  const sockaddr_in to = NameOf(two_);
  ASSERT_EQ(rconnect(one_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << strerror(errno);
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  ASSERT_EQ(rgetpeername(one_, reinterpret_cast<sockaddr*>(&peer), &length), 0);
  EXPECT_TRUE(Same(peer, to));
  ASSERT_EQ(rsend(one_, "hello", 5, 0), 5);
  sockaddr_in from{};
  ASSERT_EQ(Take(two_, &from), "hello");
  Fd third = Bound();
  for (int i = 0; i < 3; ++i) {
    SendTo(third, "not wanted", NameOf(one_));
    ASSERT_EQ(SendTo(two_, "wanted", from), 6);
    ASSERT_EQ(Take(one_), "wanted");
  }
}

TEST_F(RsocketDatagram, BlockingReceiveIsWoken) {
  for (int i = 0; i < 20; ++i) {
    std::thread sender([&, receiver = gettid()] {
      EXPECT_TRUE(AwaitPoll(receiver));
      SendTo(one_, "woken", NameOf(two_));
    });
    char buffer[10];
    EXPECT_EQ(rrecv(two_, buffer, sizeof buffer, 0), 5);
    sender.join();
  }
}

TEST_F(RsocketDatagram, APeerThatWasStartedAnewIsFound) {
  const sockaddr_in to = NameOf(two_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(SendTo(one_, "first", to), 5);
    ASSERT_EQ(Take(two_), "first");
  }
  two_.Reset();
  two_ = Fd(::rsocket(AF_INET, SOCK_DGRAM, 0));
  ASSERT_EQ(rbind(two_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << strerror(errno);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  do {
    SendTo(one_, "second", to, MSG_DONTWAIT);
  } while (!Readable(two_, 20) && std::chrono::steady_clock::now() < deadline);
  EXPECT_EQ(Take(two_), "second");
}

TEST_F(RsocketDatagram, NobodyThereIsSaidToWhoIsConnected) {
  const sockaddr_in to = NameOf(two_);
  two_.Reset();
  ASSERT_EQ(rconnect(one_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  ASSERT_EQ(rsend(one_, "hello", 5, 0), 5);
  char buffer[10];
  EXPECT_EQ(rrecv(one_, buffer, sizeof buffer, 0), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_F(RsocketDatagram, WrongUse) {
  char buffer[10];
  EXPECT_EQ(rsend(one_, "x", 1, 0), -1);
  EXPECT_EQ(errno, EDESTADDRREQ);
  EXPECT_EQ(rrecv(one_, buffer, sizeof buffer, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rlisten(one_, 1), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(raccept(one_, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rshutdown(one_, SHUT_RDWR), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(riomap(one_, buffer, sizeof buffer, 0, 0, -1), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  sockaddr_in group = Loopback(htons(7471));
  group.sin_addr.s_addr = htonl(0xe0000101);
  EXPECT_EQ(SendTo(one_, "x", group), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  sockaddr_in taken = NameOf(two_);
  Fd third(::rsocket(AF_INET, SOCK_DGRAM, 0));
  EXPECT_EQ(rbind(third, reinterpret_cast<const sockaddr*>(&taken), sizeof taken), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(::rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
}

TEST_F(RsocketDatagram, Options) {
  int value = 0;
  socklen_t length = sizeof value;
  ASSERT_EQ(rgetsockopt(one_, SOL_SOCKET, SO_TYPE, &value, &length), 0);
  EXPECT_EQ(value, SOCK_DGRAM);
  value = 1 << 20;
  ASSERT_EQ(rsetsockopt(one_, SOL_SOCKET, SO_RCVBUF, &value, sizeof value), 0);
  value = 0;
  ASSERT_EQ(rgetsockopt(one_, SOL_SOCKET, SO_RCVBUF, &value, &length), 0);
  EXPECT_EQ(value, 1 << 20);
  value = 100;
  ASSERT_EQ(rsetsockopt(one_, SOL_RDMA, RDMA_SQSIZE, &value, sizeof value), 0);
  timeval brief{0, 20'000};
  ASSERT_EQ(rsetsockopt(one_, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief), 0);
  char buffer[10];
  EXPECT_EQ(rrecv(one_, buffer, sizeof buffer, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(SendTo(one_, "x", NameOf(two_)), 1);
  EXPECT_EQ(rsetsockopt(one_, SOL_RDMA, RDMA_SQSIZE, &value, sizeof value), -1) << "it has its queues now";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rsetsockopt(one_, IPPROTO_TCP, 1, &value, sizeof value), -1);
  EXPECT_EQ(errno, ENOPROTOOPT);
}

// Whatever comes over UDP is looked at with suspicion.
TEST_F(RsocketDatagram, StrangeUdpDatagramsAreDropped) {
  const sockaddr_in to = NameOf(one_);
  const int udp = socket(AF_INET, SOCK_DGRAM, 0);
  const uint8_t control[] = {0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0, 0, 1, 127, 0, 0, 1};
  for (size_t length = 0; length <= sizeof control; ++length) {
    sendto(udp, control, length, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  const std::string noise(60'000, 'n');
  sendto(udp, noise.data(), noise.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  EXPECT_FALSE(Readable(one_, 50));
  ASSERT_EQ(SendTo(two_, "real", to), 4);
  EXPECT_EQ(Take(one_), "real");
  close(udp);
}

TEST(RsocketDatagram6, FromAnIpv4Peer) {
  Fd six(::rsocket(AF_INET6, SOCK_DGRAM, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  ASSERT_EQ(rbind(six, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  socklen_t length = sizeof any;
  ASSERT_EQ(rgetsockname(six, reinterpret_cast<sockaddr*>(&any), &length), 0);
  Fd four(::rsocket(AF_INET, SOCK_DGRAM, 0));
  const sockaddr_in to = Loopback(any.sin6_port);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(rsendto(four, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 1) << strerror(errno);
    char buffer[4];
    sockaddr_in6 from{};
    length = sizeof from;
    ASSERT_EQ(rrecvfrom(six, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &length), 1);
    EXPECT_EQ(from.sin6_family, AF_INET6);
    EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
    ASSERT_EQ(rsendto(six, "yy", 2, 0, reinterpret_cast<const sockaddr*>(&from), sizeof from), 2) << strerror(errno);
    EXPECT_EQ(rrecv(four, buffer, sizeof buffer, 0), 2);
  }
}

}  // namespace
}  // namespace weft::rsocket_api
