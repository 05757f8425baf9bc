#include "transport/sctp/usrsctp/dispatcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "sim/net/virtual_network.h"

namespace weft::transport::sctp {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class Counter final : public ReadyHandler {
 public:
  void OnReady(Interest ready) override { reads += ready.read, writes += ready.write; }
  int reads = 0, writes = 0;
};

// Whose owner takes all that there is when he is called, or comes.
class Socket final : public Watched {
 public:
  Socket() { handler_ = counter; }
  void Take() { may_read_ = may_have_room_ = false; }
  void WantRoom() { wants_room_ = true; }
  const std::shared_ptr<Counter> counter = std::make_shared<Counter>();
};

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() { dispatcher_.SetNetwork(network_); }

  // A thread that may not call handlers took in something for `socket`.
  void Come(Socket& socket) {
    Dispatcher::Due due;
    {
      const std::lock_guard lock(mutex_);
      dispatcher_.Rouse(socket);
      due = dispatcher_.WhatIsDue();
    }
    dispatcher_.Arrange(due);
  }
  void ComeFor(Socket& socket) {
    const std::lock_guard lock(mutex_);
    dispatcher_.Calm(socket);
    socket.Take();
  }

  sim::VirtualNetwork network_{1};
  std::mutex mutex_;
  Dispatcher dispatcher_{mutex_, [] { return true; }};
};

TEST_F(DispatcherTest, TheNetworksThreadIsWokenAtOnceForWhatNobodyComesFor) {
  Socket socket;
  Come(socket);
  EXPECT_EQ(dispatcher_.posts(), 1u);
  EXPECT_EQ(socket.counter->reads, 0) << "not on the thread that took it in";
  ASSERT_TRUE(network_.Step());
  EXPECT_EQ(socket.counter->reads, 1);
  ASSERT_TRUE(network_.Step());
  EXPECT_EQ(socket.counter->reads, 2) << "over and over until it is taken";
  ComeFor(socket);
  network_.RunUntilIdle();
  EXPECT_EQ(socket.counter->reads, 2);
}

TEST_F(DispatcherTest, WhatIsLentIsLeftToWhoeverItIsLentTo) {
  Socket socket;
  for (int round = 0; round < 10'000; ++round) {
    dispatcher_.Lend(socket);
    Come(socket);
    ComeFor(socket);
    network_.RunFor(microseconds(5));
  }
  EXPECT_EQ(dispatcher_.posts(), 0u);
  EXPECT_EQ(socket.counter->reads, 0);
}

TEST_F(DispatcherTest, WhatHeDoesNotComeForIsCalledSoon) {
  Socket socket;
  socket.WantRoom();
  // Lent for long: the looks have become seldom.
  for (int round = 0; round < 1000; ++round) {
    dispatcher_.Lend(socket);
    Come(socket);
    network_.RunFor(microseconds(20));
  }
  EXPECT_EQ(socket.counter->reads, 0);
  const Time last = network_.Now();
  ASSERT_TRUE(network_.RunUntil([&] { return socket.counter->reads == 1; }, milliseconds(10)));
  EXPECT_LT(network_.Now() - last, microseconds(1500));
  EXPECT_EQ(socket.counter->writes, 1);
  ComeFor(socket);
  network_.RunUntilIdle();
  EXPECT_EQ(socket.counter->reads, 1);
}

TEST_F(DispatcherTest, OneThatIsLentDoesNotHoldUpAnother) {
  Socket lent, other;
  dispatcher_.Lend(lent);
  Come(lent);
  Come(other);
  EXPECT_EQ(dispatcher_.posts(), 1u);
  ASSERT_TRUE(network_.Step());
  EXPECT_EQ(other.counter->reads, 1);
  EXPECT_EQ(lent.counter->reads, 0);
  ComeFor(lent);
  ComeFor(other);
  network_.RunUntilIdle();
  EXPECT_EQ(lent.counter->reads, 0);
}

TEST_F(DispatcherTest, TheNetworksThreadCallsAllThatItTookInItself) {
  Socket lent;
  dispatcher_.Lend(lent);
  {
    const std::lock_guard lock(mutex_);
    dispatcher_.Rouse(lent);
  }
  dispatcher_.Dispatch(/*lent_too=*/true);
  EXPECT_EQ(lent.counter->reads, 1);
  ComeFor(lent);
  network_.RunUntilIdle();
}

}  // namespace
}  // namespace weft::transport::sctp
