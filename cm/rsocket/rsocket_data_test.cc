#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "cm/rsocket/rsocket_testing.h"

namespace weft::rsocket_api {
namespace {

void SetSize(int fd, int level, int name, int value) { EXPECT_EQ(rsetsockopt(fd, level, name, &value, sizeof value), 0); }

TEST(RsocketData, ComesAsItWasSentAtEverySizeAroundTheLimits) {
  Pair pair = Connected();
  for (const size_t size : {1u, 63u, 64u, 65u, 2047u, 2048u, 4096u, 65535u, 65536u, 65537u, 131071u, 131072u, 131073u,
                            1000000u}) {
    auto received = std::async(std::launch::async, [&] { return ReceiveAll(pair.server, size); });
    ASSERT_TRUE(SendAll(pair.client, Pattern(size, 3)));
    ASSERT_EQ(received.get(), Pattern(size, 3)) << size;
  }
}

// Small buffers and queues, both directions at once, random pieces: everything waits for everything.
TEST(RsocketData, BothDirectionsAtOnceThroughSmallBuffers) {
  Pair pair = Connected([](int fd) {
    SetSize(fd, SOL_SOCKET, SO_RCVBUF, 5000);
    SetSize(fd, SOL_SOCKET, SO_SNDBUF, 4096);
    SetSize(fd, SOL_RDMA, RDMA_SQSIZE, 16);
    SetSize(fd, SOL_RDMA, RDMA_RQSIZE, 16);
  });
  constexpr size_t kTotal = 2 << 20;
  const auto sent = Pattern(kTotal, 5);
  const auto sender = [&](int fd, unsigned seed) {
    std::mt19937 random(seed);
    for (size_t at = 0; at < kTotal;) {
      const size_t length = std::min<size_t>(1 + random() % (random() % 4 == 0 ? 20000 : 200), kTotal - at);
      if (rsend(fd, sent.data() + at, length, 0) != static_cast<ssize_t>(length)) return false;
      at += length;
    }
    return true;
  };
  const auto receiver = [&](int fd, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> got(kTotal);
    for (size_t at = 0; at < kTotal;) {
      const ssize_t part = rrecv(fd, got.data() + at, std::min<size_t>(1 + random() % 9000, kTotal - at), 0);
      if (part <= 0) return false;
      at += static_cast<size_t>(part);
    }
    return got == sent;
  };
  std::vector<std::future<bool>> all;
  all.push_back(std::async(std::launch::async, sender, static_cast<int>(pair.client), 1));
  all.push_back(std::async(std::launch::async, sender, static_cast<int>(pair.server), 2));
  all.push_back(std::async(std::launch::async, receiver, static_cast<int>(pair.client), 3));
  all.push_back(std::async(std::launch::async, receiver, static_cast<int>(pair.server), 4));
  for (auto& one : all) EXPECT_TRUE(one.get());
}

TEST(RsocketData, ASenderWithoutAReaderIsToldToWait) {
  Pair pair = Connected();
  const auto bytes = Pattern(100000);
  size_t sent = 0;
  for (;;) {
    const ssize_t part = rsend(pair.client, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (part < 0) break;
    ASSERT_GT(part, 0);
    sent += static_cast<size_t>(part);
    ASSERT_LT(sent, 10u << 20);
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(PollOne(pair.client, POLLOUT, 0), 0);
  EXPECT_GE(sent, 65536u);
  EXPECT_EQ(ReceiveAll(pair.server, sent).size(), sent);
  EXPECT_EQ(PollOne(pair.client, POLLOUT, 20000), POLLOUT);
}

// More messages than the peer has receives for, none of them read.
TEST(RsocketData, ManySmallMessagesDoNotOverrunThePeer) {
  Pair pair = Connected([](int fd) { SetSize(fd, SOL_RDMA, RDMA_RQSIZE, 16); });
  int sent = 0;
  while (rsend(pair.client, "abc", 3, MSG_DONTWAIT) == 3) ASSERT_LT(++sent, 1000);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GE(sent, 8);
  EXPECT_EQ(ReceiveAll(pair.server, static_cast<size_t>(sent) * 3).size(), static_cast<size_t>(sent) * 3);
  EXPECT_EQ(PollOne(pair.client, POLLOUT, 20000), POLLOUT);
}

TEST(RsocketData, PeekLeavesItThere) {
  Pair pair = Connected();
  ASSERT_TRUE(SendAll(pair.client, Pattern(100)));
  ASSERT_EQ(PollOne(pair.server, POLLIN, 20000), POLLIN);
  std::vector<uint8_t> seen(100);
  EXPECT_EQ(rrecv(pair.server, seen.data(), 100, MSG_PEEK), 100);
  EXPECT_EQ(seen, Pattern(100));
  EXPECT_EQ(ReceiveAll(pair.server, 100), Pattern(100));
}

TEST(RsocketData, IsGatheredAndScattered) {
  Pair pair = Connected();
  auto bytes = Pattern(100000);
  iovec pieces[] = {{bytes.data(), 1}, {nullptr, 0}, {bytes.data() + 1, 70000}, {bytes.data() + 70001, 29999}};
  auto received = std::async(std::launch::async, [&] {
    std::vector<uint8_t> got(100000);
    iovec into[] = {{got.data(), 3}, {got.data() + 3, 50000}, {got.data() + 50003, 49997}};
    msghdr message{};
    message.msg_iov = into;
    message.msg_iovlen = 3;
    EXPECT_EQ(rrecvmsg(pair.server, &message, MSG_WAITALL), 100000);
    return got;
  });
  EXPECT_EQ(rwritev(pair.client, pieces, 4), 100000);
  EXPECT_EQ(received.get(), bytes);
}

TEST(RsocketData, ATimeoutEndsAWait) {
  Pair pair = Connected();
  timeval limit{0, 20000};
  ASSERT_EQ(rsetsockopt(pair.client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  char byte;
  EXPECT_EQ(rrecv(pair.client, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// A reader and a pollster of the same socket: neither takes the other's wake-up for good.
TEST(RsocketData, NoWakeUpIsLostBetweenThreads) {
  Pair pair = Connected();
  constexpr int kRounds = 3000;
  std::atomic<bool> done = false;
  std::thread pollster([&] {
    while (!done) PollOne(pair.server, POLLIN, 50);
  });
  std::thread echo([&] {
    char byte;
    while (rrecv(pair.server, &byte, 1, 0) == 1) rsend(pair.server, &byte, 1, 0);
  });
  for (int i = 0; i < kRounds; ++i) {
    char byte = static_cast<char>(i);
    ASSERT_EQ(rsend(pair.client, &byte, 1, 0), 1);
    ASSERT_EQ(rrecv(pair.client, &byte, 1, 0), 1);
    ASSERT_EQ(byte, static_cast<char>(i));
  }
  rshutdown(pair.client, SHUT_WR);
  echo.join();
  done = true;
  pollster.join();
}

// --- riomap ---

TEST(RsocketMap, DataIsPlacedWhereThePeerMappedIt) {
  Pair pair = Connected([](int fd) { SetSize(fd, SOL_RDMA, RDMA_IOMAPSIZE, 2); });
  std::vector<uint8_t> memory(300000), other(100);
  ASSERT_EQ(riomap(pair.server, memory.data(), memory.size(), PROT_WRITE, 0, 4096), 4096);
  const off_t chosen = riomap(pair.server, other.data(), other.size(), PROT_WRITE, 0, -1);
  EXPECT_EQ(chosen, static_cast<off_t>(reinterpret_cast<uintptr_t>(other.data())));
  std::vector<uint8_t> third(10);
  EXPECT_EQ(riomap(pair.server, third.data(), third.size(), PROT_WRITE, 0, -1), -1);
  EXPECT_EQ(errno, ENOSPC);

  ASSERT_TRUE(SendAll(pair.server, {1}));  // tells of the mappings
  ASSERT_EQ(ReceiveAll(pair.client, 1).size(), 1u);
  const auto bytes = Pattern(250000);
  EXPECT_EQ(riowrite(pair.client, bytes.data(), bytes.size(), 4096 + 17, 0), bytes.size());
  EXPECT_EQ(riowrite(pair.client, bytes.data(), 50, chosen + 50, 0), 50u);
  ASSERT_TRUE(SendAll(pair.client, {1}));
  ASSERT_EQ(ReceiveAll(pair.server, 1).size(), 1u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + 17));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 50, other.begin() + 50));

  EXPECT_EQ(riowrite(pair.client, bytes.data(), 1, 0, 0), static_cast<size_t>(-1));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(riounmap(pair.server, memory.data(), memory.size()), 0);
  EXPECT_EQ(riounmap(pair.server, memory.data(), memory.size()), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(riomap(pair.server, third.data(), third.size(), PROT_WRITE, 0, 0), 0);
}

TEST(RsocketMap, NeedsAConnectionAndAPeerWithRoom) {
  std::vector<uint8_t> memory(100);
  Fd lonely(::rsocket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(riomap(lonely, memory.data(), memory.size(), PROT_WRITE, 0, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  Pair pair = Connected();
  EXPECT_EQ(riomap(pair.client, memory.data(), memory.size(), PROT_WRITE, 0, 0), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(riomap(pair.client, memory.data(), memory.size(), PROT_NONE, 0, 0), 0);
  EXPECT_EQ(riounmap(pair.client, memory.data(), memory.size()), 0);
}

}  // namespace
}  // namespace weft::rsocket_api
