#include "pmi/launch/event_poller.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

namespace weft::pmi {
namespace {

struct Pair {
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0); }
  ~Pair() {
    for (const int fd : ends) close(fd);
  }
  void Say() { EXPECT_EQ(write(ends[1], "x", 1), 1); }
  int ends[2];
};

TEST(EventPollerTest, WhatIsReadyIsToldUntilItIsNotWatchedAnyMore) {
  EventPoller poller;
  Pair pair;
  std::vector<uint32_t> told;
  ASSERT_TRUE(poller.Watch(pair.ends[0], EPOLLIN, [&](uint32_t events) { told.push_back(events); }));
  poller.Wait(0);
  EXPECT_TRUE(told.empty());
  pair.Say();
  poller.Wait(-1);
  poller.Wait(-1);  // level-triggered
  EXPECT_EQ(told, std::vector<uint32_t>(2, EPOLLIN));
  poller.Change(pair.ends[0], EPOLLOUT);
  poller.Wait(-1);
  EXPECT_EQ(told.back(), static_cast<uint32_t>(EPOLLOUT));
  poller.Forget(pair.ends[0]);
  poller.Forget(pair.ends[0]);
  poller.Wait(0);
  EXPECT_EQ(told.size(), 3u);
}

TEST(EventPollerTest, WithoutAnythingWantedTheEndIsTold) {
  EventPoller poller;
  Pair pair;
  uint32_t told = 0;
  ASSERT_TRUE(poller.Watch(pair.ends[0], 0, [&](uint32_t events) { told = events; }));
  shutdown(pair.ends[1], SHUT_RDWR);
  poller.Wait(-1);
  EXPECT_TRUE(told & EPOLLHUP);
}

TEST(EventPollerTest, ACallMayForgetItselfAndOthersThatAreReady) {
  EventPoller poller;
  Pair pairs[3];
  int calls = 0;
  for (Pair& pair : pairs) {
    pair.Say();
    ASSERT_TRUE(poller.Watch(pair.ends[0], EPOLLIN, [&](uint32_t) {
      ++calls;
      for (Pair& each : pairs) poller.Forget(each.ends[0]);
    }));
  }
  poller.Wait(-1);
  EXPECT_EQ(calls, 1);
}

TEST(EventPollerTest, WhatIsNoDescriptorIsNotWatched) {
  EventPoller poller;
  EXPECT_TRUE(poller.Watch(-1, EPOLLIN, [](uint32_t) {}));
  poller.Change(-1, EPOLLIN);
  poller.Forget(-1);
  poller.Forget(7777);
}

}  // namespace
}  // namespace weft::pmi
