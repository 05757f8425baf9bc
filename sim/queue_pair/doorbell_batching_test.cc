#include "sim/queue_pair/doorbell_batching.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace weft::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// A program in virtual time. Posting takes it 100 ns, a system call 5 us.
class DoorbellBatchingTest : public testing::Test {
 protected:
  // Returns whether it was sent.
  bool Post(const DoorbellBatching::Post& post = {.bytes = 64}) {
    now_ += nanoseconds(100);
    const bool answers = batching_.Answers(completions_);
    if (!answers && batching_.Defers(post, now_)) return false;
    now_ += microseconds(5);
    batching_.Returned(answers ? transport::Time{} : now_);
    return true;
  }
  bool PostSignaled() { return Post({.bytes = 64, .signaled = true}); }
  // Calls that were sent, of so many.
  int Row(int posts) {
    int sent = 0;
    for (int i = 0; i < posts; ++i) sent += Post();
    return sent;
  }
  // Waits so long for completions, polling, which sends what is deferred.
  void Poll(microseconds how_long, uint64_t completions) {
    batching_.Clear();
    now_ += how_long;
    completions_ += completions;
  }

  DoorbellBatching batching_;
  transport::Time now_{std::chrono::hours(1)};
  uint64_t completions_ = 0;
};

TEST_F(DoorbellBatchingTest, WhatIsPostedAloneIsSentAtOnce) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(Post()) << i;
    now_ += microseconds(1);
  }
  EXPECT_FALSE(batching_.pending());
}

TEST_F(DoorbellBatchingTest, AnAnswerIsSentAtOnce) {
  for (int i = 0; i < 100; ++i) {
    Poll(microseconds(0), 1);
    EXPECT_TRUE(Post()) << i;
  }
}

TEST_F(DoorbellBatchingTest, ARowIsSentTogether) {
  EXPECT_EQ(Row(5), 5);  // the first, and those that show that it is a row
  EXPECT_EQ(Row(63), 0);
  EXPECT_TRUE(batching_.pending());
  EXPECT_TRUE(Post());
  EXPECT_FALSE(batching_.pending());
}

TEST_F(DoorbellBatchingTest, ALongOneIsSentWithWhatIsBeforeIt) {
  EXPECT_EQ(Row(10), 5);
  EXPECT_TRUE(Post({.bytes = 1025}));
  EXPECT_FALSE(batching_.pending());
  EXPECT_FALSE(Post({.bytes = 1024}));
}

TEST_F(DoorbellBatchingTest, WhoWillSleepUntilItCompletesGetsItSent) {
  EXPECT_EQ(Row(10), 5);
  EXPECT_FALSE(Post({.bytes = 64, .may_sleep = true}));
  EXPECT_TRUE(Post({.bytes = 64, .signaled = true, .may_sleep = true}));
}

TEST_F(DoorbellBatchingTest, OneSignaledOfManyIsSent) {
  Row(5 + 15);
  EXPECT_TRUE(PostSignaled());
  EXPECT_EQ(Row(10), 0);
  EXPECT_FALSE(PostSignaled());  // too few before it to be worth a system call
}

TEST_F(DoorbellBatchingTest, WhereAllAreSignaledNoneIsSpecial) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(PostSignaled());
  for (int i = 0; i < 63; ++i) EXPECT_FALSE(PostSignaled()) << i;
  EXPECT_TRUE(PostSignaled());
}

TEST_F(DoorbellBatchingTest, AProgramThatWaitsForRoomGoesOnWhereItWas) {
  Row(128);
  Poll(microseconds(40), 1);
  EXPECT_EQ(Row(63), 0);
  EXPECT_TRUE(Post());
}

TEST_F(DoorbellBatchingTest, AfterAPauseWithoutCompletionsARowBeginsAnew) {
  Row(128);
  Poll(microseconds(40), 0);
  EXPECT_EQ(Row(5), 5);
  EXPECT_FALSE(Post());
}

TEST_F(DoorbellBatchingTest, ShortRowsBetweenPausesAreNoStream) {
  Row(128);
  Poll(microseconds(40), 1);
  EXPECT_FALSE(Post());  // it might go on
  Poll(microseconds(40), 1);
  EXPECT_TRUE(Post());   // it did not
  Poll(microseconds(40), 1);
  EXPECT_TRUE(Post());
}

}  // namespace
}  // namespace weft::sim
