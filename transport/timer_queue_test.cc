#include "transport/timer_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::transport {
namespace {

Time At(int ns) { return Time(Duration(ns)); }

TEST(TimerQueueTest, RunsInOrderOfTimeAndThenOfAddition) {
  TimerQueue queue;
  std::vector<int> ran;
  queue.Add(At(20), [&] { ran.push_back(3); });
  queue.Add(At(10), [&] { ran.push_back(1); });
  queue.Add(At(10), [&] { ran.push_back(2); });
  EXPECT_EQ(queue.NextDue(), At(10));
  EXPECT_FALSE(queue.TakeDue(At(9)));
  while (auto work = queue.TakeDue(At(20))) work();
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(queue.NextDue(), TimerQueue::kNever);
}

TEST(TimerQueueTest, CancelTakesOnceAndOnlyWhatWaits) {
  TimerQueue queue;
  TimerId id = queue.Add(At(1), [] {});
  EXPECT_NE(id, 0u);
  EXPECT_TRUE(queue.Cancel(id));
  EXPECT_FALSE(queue.Cancel(id));
  EXPECT_FALSE(queue.Cancel(0));
  TimerId next = queue.Add(At(1), [] {});
  EXPECT_NE(next, id);
  EXPECT_TRUE(queue.TakeDue(At(1)));
  EXPECT_FALSE(queue.Cancel(next));
}

TEST(TimerQueueTest, WorkForTheEndOfTimeNeverRuns) {
  TimerQueue queue;
  queue.Add(Time::max(), [] {});
  EXPECT_FALSE(queue.TakeDue(At(1'000'000)));
}

}  // namespace
}  // namespace weft::transport
