#include "mpi_hybrid/rma/lock_manager.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::mpi::rma {
namespace {

using Outcome = LockManager::Outcome;

class LockManagerTest : public testing::Test {
 protected:
  Outcome Shared(int rank) { return locks_.Acquire({rank, static_cast<uint64_t>(rank)}, LockWish::kShared); }
  Outcome Exclusive(int rank) { return locks_.Acquire({rank, static_cast<uint64_t>(rank)}, LockWish::kExclusive); }
  Outcome Overtaking(int rank) { return locks_.Acquire({rank, static_cast<uint64_t>(rank)}, LockWish::kOvertaking); }
  // Ranks that get the lock when `rank` gives it back.
  std::vector<int> Release(int rank) {
    std::vector<LockManager::Asker> granted;
    EXPECT_TRUE(locks_.Release(rank, &granted));
    return RanksOf(granted);
  }
  std::vector<int> Drop(int rank) {
    std::vector<LockManager::Asker> granted;
    locks_.Drop(rank, &granted);
    return RanksOf(granted);
  }
  static std::vector<int> RanksOf(const std::vector<LockManager::Asker>& askers) {
    std::vector<int> ranks;
    for (const auto& asker : askers) {
      EXPECT_EQ(asker.token, static_cast<uint64_t>(asker.rank));
      ranks.push_back(asker.rank);
    }
    return ranks;
  }

  alignas(64) std::array<uint8_t, 4096> memory_{};
  WindowLock lock_{ControlBlock(memory_.data(), 8)};
  LockManager locks_{lock_};
};

using Ranks = std::vector<int>;

TEST_F(LockManagerTest, TryingTakesItWhenItIsFreeAndElseChangesNothing) {
  EXPECT_EQ(locks_.TryAcquire(0, LockWish::kExclusive), Outcome::kGranted);
  EXPECT_TRUE(locks_.held());
  Release(0);
  Shared(1);
  EXPECT_EQ(locks_.TryAcquire(0, LockWish::kShared), Outcome::kGranted);
  Release(0);
  EXPECT_EQ(locks_.TryAcquire(0, LockWish::kExclusive), Outcome::kQueued);
  EXPECT_EQ(locks_.TryAcquire(3, LockWish::kShared), Outcome::kGranted) << "nobody waits";
  Release(3);
  EXPECT_EQ(locks_.TryAcquire(1, LockWish::kShared), Outcome::kRefused) << "it has the lock";
  Exclusive(2);
  EXPECT_EQ(locks_.TryAcquire(0, LockWish::kShared), Outcome::kQueued) << "behind the one that waits for exclusive use";
  EXPECT_EQ(locks_.TryAcquire(2, LockWish::kExclusive), Outcome::kRefused) << "it waits already";
  EXPECT_EQ(Release(1), Ranks{2});
}

TEST_F(LockManagerTest, SharedLocksAreHeldTogether) {
  EXPECT_EQ(Shared(0), Outcome::kGranted);
  EXPECT_EQ(Shared(1), Outcome::kGranted);
  EXPECT_EQ(Release(0), Ranks());
  EXPECT_TRUE(locks_.held());
  EXPECT_EQ(Release(1), Ranks());
  EXPECT_FALSE(locks_.held());
}

TEST_F(LockManagerTest, AnExclusiveLockWaitsForAllSharedOnes) {
  Shared(0);
  Shared(1);
  EXPECT_EQ(Exclusive(2), Outcome::kQueued);
  EXPECT_EQ(Release(1), Ranks());
  EXPECT_EQ(Release(0), Ranks({2}));
}

TEST_F(LockManagerTest, SharedRequestsDoNotOvertakeAnExclusiveOne) {
  Shared(0);
  Exclusive(1);
  EXPECT_EQ(Shared(2), Outcome::kQueued);
  EXPECT_EQ(Release(0), Ranks({1}));
  EXPECT_EQ(Release(1), Ranks({2}));
}

TEST_F(LockManagerTest, ThoseOfLockAllOvertakeWhoWaitsForExclusiveUseAndNotWhoHasIt) {
  Shared(0);
  Exclusive(1);
  EXPECT_EQ(Shared(2), Outcome::kQueued);
  EXPECT_EQ(Overtaking(3), Outcome::kGranted);
  EXPECT_EQ(Release(0), Ranks());
  EXPECT_EQ(Release(3), Ranks({1}));
  EXPECT_EQ(Overtaking(4), Outcome::kQueued);
  Exclusive(5);
  EXPECT_EQ(Overtaking(6), Outcome::kQueued);
  EXPECT_EQ(Release(1), Ranks({2, 4, 6}));
  for (int rank : {2, 4}) EXPECT_EQ(Release(rank), Ranks());
  EXPECT_EQ(Release(6), Ranks({5}));
}

TEST_F(LockManagerTest, SharedRequestsThatWaitAreGrantedTogetherUpToTheNextExclusiveOne) {
  Exclusive(0);
  for (int rank : {1, 2}) Shared(rank);
  Exclusive(3);
  Shared(4);
  EXPECT_EQ(Release(0), Ranks({1, 2}));
  EXPECT_EQ(Release(2), Ranks());
  EXPECT_EQ(Release(1), Ranks({3}));
  EXPECT_EQ(Release(3), Ranks({4}));
}

TEST_F(LockManagerTest, AskingTwiceIsRefused) {
  Exclusive(0);
  EXPECT_EQ(Shared(0), Outcome::kRefused);
  Shared(1);
  EXPECT_EQ(Exclusive(1), Outcome::kRefused);
}

TEST_F(LockManagerTest, WhoDoesNotHoldTheLockCannotGiveItBack) {
  Exclusive(0);
  Shared(1);
  std::vector<LockManager::Asker> granted;
  EXPECT_FALSE(locks_.Release(1, &granted));
  EXPECT_FALSE(locks_.Release(2, &granted));
  EXPECT_TRUE(granted.empty());
}

TEST_F(LockManagerTest, ADeadHolderLosesTheLock) {
  Exclusive(0);
  Exclusive(1);
  EXPECT_EQ(Drop(0), Ranks({1}));
}

TEST_F(LockManagerTest, ADeadProcessThatWaitsBlocksNobody) {
  Shared(0);
  Exclusive(1);
  Shared(2);
  EXPECT_EQ(Drop(1), Ranks({2}));
}

// --- what ranks of the target's host do without a word ---

TEST_F(LockManagerTest, WhoAsksWaitsForWhoTookItAndGetsItWhenItIsTriedAgain) {
  ASSERT_TRUE(lock_.TryExclusive(5, true));
  EXPECT_EQ(Shared(0), Outcome::kQueued);
  EXPECT_EQ(Exclusive(1), Outcome::kQueued);
  std::vector<LockManager::Asker> granted;
  locks_.Retry(&granted);
  EXPECT_TRUE(granted.empty());
  lock_.Release(5);
  locks_.Retry(&granted);
  EXPECT_EQ(RanksOf(granted), Ranks{0});
  EXPECT_FALSE(lock_.TryExclusive(5, false)) << "it is shared";
  EXPECT_EQ(Release(0), Ranks{1});
  EXPECT_FALSE(lock_.TryShared(5));
  EXPECT_EQ(Release(1), Ranks());
  EXPECT_TRUE(lock_.TryShared(5));
}

TEST_F(LockManagerTest, NobodyNewSharesItWhileSomebodyAsksForItAlone) {
  ASSERT_TRUE(lock_.TryShared(5));
  EXPECT_EQ(Exclusive(1), Outcome::kQueued);
  EXPECT_FALSE(lock_.TryShared(6));
  lock_.Release(5);
  std::vector<LockManager::Asker> granted;
  locks_.Retry(&granted);
  EXPECT_EQ(RanksOf(granted), Ranks{1});
}

}  // namespace
}  // namespace weft::mpi::rma
