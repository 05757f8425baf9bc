#include "mpi_hybrid/rma/window_lock.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace weft::mpi::rma {
namespace {

constexpr int kRanks = 8;

class WindowLockTest : public testing::Test {
 protected:
  std::vector<int> Woken() {
    std::vector<int> ranks;
    lock_.ForEachWaiting([&](int rank) { ranks.push_back(rank); });
    return ranks;
  }

  alignas(64) std::array<uint8_t, 4096> memory_{};
  ControlBlock control_{memory_.data(), kRanks};
  WindowLock lock_{control_};
};

TEST_F(WindowLockTest, IsSharedByManyOrHadByOne) {
  EXPECT_TRUE(lock_.TryShared(0));
  EXPECT_TRUE(lock_.TryShared(7));
  EXPECT_FALSE(lock_.TryExclusive(1, false));
  lock_.Release(0);
  lock_.Release(7);
  EXPECT_TRUE(lock_.TryExclusive(1, false));
  EXPECT_FALSE(lock_.TryShared(0));
  EXPECT_FALSE(lock_.TryExclusive(2, true));
  lock_.Release(1);
  EXPECT_TRUE(lock_.TryExclusive(2, true));
}

TEST_F(WindowLockTest, WhoStaysIsTheNextAndWhoDoesNotIsInNobodysWay) {
  ASSERT_TRUE(lock_.TryShared(0));
  EXPECT_FALSE(lock_.TryExclusive(1, false));
  EXPECT_TRUE(lock_.TryShared(2));
  EXPECT_FALSE(lock_.TryExclusive(1, true));
  EXPECT_FALSE(lock_.TryShared(3));
  EXPECT_FALSE(lock_.MayShare());
  EXPECT_FALSE(lock_.MayTakeExclusive(1));
  lock_.Release(0);
  lock_.Release(2);
  EXPECT_TRUE(lock_.MayTakeExclusive(1));
  EXPECT_FALSE(lock_.MayTakeExclusive(4)) << "it is promised";
  EXPECT_TRUE(lock_.TryExclusive(1, true));
}

TEST_F(WindowLockTest, WhoOvertakesSharesItWhileItIsPromisedAndNotWhenSomebodyHasIt) {
  ASSERT_TRUE(lock_.TryShared(0));
  ASSERT_FALSE(lock_.TryExclusive(1, true));
  EXPECT_FALSE(lock_.TryShared(2));
  EXPECT_TRUE(lock_.MayShare(true));
  EXPECT_TRUE(lock_.TryShared(2, true));
  lock_.Release(0);
  EXPECT_FALSE(lock_.TryExclusive(1, true)) << "rank 2 shares it";
  lock_.Release(2);
  EXPECT_TRUE(lock_.TryExclusive(1, true));
  EXPECT_FALSE(lock_.MayShare(true));
  EXPECT_FALSE(lock_.TryShared(3, true));
}

TEST_F(WindowLockTest, GivingBackWhatOneDoesNotHaveTakesItFromNobody) {
  ASSERT_TRUE(lock_.TryExclusive(1, true));
  lock_.Release(2);
  EXPECT_FALSE(lock_.TryShared(0));
  lock_.Release(1);
  ASSERT_TRUE(lock_.TryShared(1));
  lock_.Release(2);
  EXPECT_FALSE(lock_.TryExclusive(0, false));
}

TEST_F(WindowLockTest, WhoGivesItBackDoesNotHaveItBeforeThoseThatWait) {
  ASSERT_TRUE(lock_.TryExclusive(2, true));
  lock_.StartWaiting(1, true);
  lock_.StartWaiting(5, true);
  EXPECT_FALSE(lock_.TryExclusive(1, true));
  EXPECT_FALSE(lock_.TryExclusive(5, true));
  lock_.Release(2);
  EXPECT_FALSE(lock_.TryExclusive(2, true));
  EXPECT_FALSE(lock_.TryExclusive(1, true)) << "the next one behind";
  EXPECT_TRUE(lock_.TryExclusive(5, true));
  lock_.StopWaiting(5);
  lock_.Release(5);
  EXPECT_FALSE(lock_.TryShared(5));
  EXPECT_TRUE(lock_.TryExclusive(1, true));
  lock_.StopWaiting(1);
  lock_.Release(1);
  EXPECT_TRUE(lock_.TryExclusive(2, true));
}

TEST_F(WindowLockTest, WhoWaitsToShareIsNotPassedOver) {
  ASSERT_TRUE(lock_.TryExclusive(2, true));
  lock_.StartWaiting(4, false);
  lock_.StartWaiting(5, true);
  lock_.Release(2);
  EXPECT_TRUE(lock_.TryShared(4));
  EXPECT_FALSE(lock_.TryExclusive(5, true)) << "it is the next";
  EXPECT_FALSE(lock_.TryShared(2));
  lock_.StopWaiting(4);
  lock_.Release(4);
  EXPECT_TRUE(lock_.TryExclusive(5, true));
}

TEST_F(WindowLockTest, WhatWasPromisedToTheDeadIsTakenBack) {
  ASSERT_TRUE(lock_.TryExclusive(2, true));
  lock_.StartWaiting(5, true);
  lock_.Release(2);
  EXPECT_EQ(lock_.Holder(2), 5);
  lock_.Forget(5);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(lock_.TryExclusive(2, true)) << "it is promised no more: " << i;
    lock_.Release(2);
  }
  EXPECT_EQ(control_.head->waiters.load(), 0u);
}

TEST_F(WindowLockTest, ThoseThatWaitAreWoken) {
  EXPECT_TRUE(Woken().empty());
  lock_.StartWaiting(3, false);
  lock_.StartWaiting(5, true);
  EXPECT_EQ(Woken(), (std::vector<int>{3, 5}));
  lock_.StopWaiting(3);
  EXPECT_EQ(Woken(), std::vector<int>{5});
}

TEST_F(WindowLockTest, AHolderIsNamedAndNonsenseIsTakenBack) {
  EXPECT_EQ(lock_.Holder(0), -1);
  lock_.TryShared(6);
  EXPECT_EQ(lock_.Holder(0), 6);
  EXPECT_EQ(lock_.Holder(6), -1) << "but for oneself";
  lock_.Release(6);
  lock_.TryExclusive(2, true);
  EXPECT_EQ(lock_.Holder(0), 2);
  control_.head->writer = 1'000'000;
  EXPECT_EQ(lock_.Holder(0), -1);
  EXPECT_TRUE(lock_.TryShared(0));
}

TEST_F(WindowLockTest, ThreadsThatTryAllTheTimeExcludeEachOther) {
  constexpr int kTimes = 20000;
  int together = 0;  // of those that share it, as many as there are; of the others, one
  std::atomic<int> sharing{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      for (int i = 0; i < kTimes; ++i) {
        if ((i + rank) % 3 == 0) {
          while (!lock_.TryExclusive(rank, true)) std::this_thread::yield();
          wrong += sharing != 0;
          ++together;
        } else {
          while (!lock_.TryShared(rank, i % 2 == 0)) std::this_thread::yield();
          ++sharing;
          --sharing;
        }
        lock_.Release(rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  int expected = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (int i = 0; i < kTimes; ++i) expected += (i + rank) % 3 == 0;
  }
  EXPECT_EQ(together, expected);
}

}  // namespace
}  // namespace weft::mpi::rma
