#include "sim/connection/completer.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>

namespace weft::sim {
namespace {

ibv_wc Completion(uint64_t id) {
  ibv_wc completion{};
  completion.wr_id = id;
  return completion;
}

class CompleterTest : public ::testing::Test {
 protected:
  static bool HasEvent(const CompletionChannel& channel) {
    pollfd entry{channel.fd(), POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  }

  QueuePairCounters counters_;
  Completer completer_{1, counters_};
  const std::shared_ptr<CompletionChannel> channel_ = std::make_shared<CompletionChannel>();
  const std::shared_ptr<CompletionQueue> queue_ = std::make_shared<CompletionQueue>(1000, channel_, nullptr, nullptr);
};

TEST_F(CompleterTest, CompletionsAndTheirEventsWaitWhileTheyAreHeld) {
  queue_->RequestNotify(false);
  {
    const Completer::Hold hold(completer_);
    completer_.Push(*queue_, Completion(1), false);
    completer_.Push(*queue_, Completion(2), false);
    EXPECT_TRUE(queue_->empty());
    EXPECT_FALSE(HasEvent(*channel_));
  }
  EXPECT_TRUE(HasEvent(*channel_));
  ibv_wc out[3];
  ASSERT_EQ(queue_->Poll(3, out), 2);
  EXPECT_EQ(out[0].wr_id, 1u);
  EXPECT_EQ(out[1].wr_id, 2u);
  completer_.Push(*queue_, Completion(3), false);
  EXPECT_EQ(queue_->Poll(3, out), 1) << "at once";
}

TEST_F(CompleterTest, MoreThanItHasRoomForComeInOrder) {
  constexpr uint64_t kMany = 700;
  {
    const Completer::Hold hold(completer_);
    for (uint64_t id = 0; id < kMany; ++id) completer_.Push(*queue_, Completion(id), false);
  }
  ibv_wc out;
  for (uint64_t id = 0; id < kMany; ++id) {
    ASSERT_EQ(queue_->Poll(1, &out), 1);
    EXPECT_EQ(out.wr_id, id);
  }
}

TEST_F(CompleterTest, AQueueThatOverrunsAfterwardsIsToldOf) {
  const auto small = std::make_shared<CompletionQueue>(1, nullptr, nullptr, nullptr);
  {
    const Completer::Hold hold(completer_);
    completer_.Push(*small, Completion(1), false);
    completer_.Push(*small, Completion(2), false);
    EXPECT_FALSE(completer_.lost());
  }
  EXPECT_TRUE(completer_.lost());
}

TEST_F(CompleterTest, WhatIsHeldKeepsItsQueue) {
  std::weak_ptr<CompletionQueue> queue;
  {
    const Completer::Hold hold(completer_);
    auto doomed = std::make_shared<CompletionQueue>(4, nullptr, nullptr, nullptr);
    queue = doomed;
    completer_.Push(*doomed, Completion(1), false);
    doomed.reset();
    EXPECT_FALSE(queue.expired());
  }
  EXPECT_TRUE(queue.expired());
}

}  // namespace
}  // namespace weft::sim
