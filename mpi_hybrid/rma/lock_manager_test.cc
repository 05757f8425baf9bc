#include "mpi_hybrid/rma/lock_manager.h"

#include <gtest/gtest.h>

namespace weft::mpi::rma {
namespace {

using Outcome = LockManager::Outcome;

class LockManagerTest : public testing::Test {
 protected:
  Outcome Shared(int rank) { return locks_.Acquire({rank, static_cast<uint64_t>(rank)}, false); }
  Outcome Exclusive(int rank) { return locks_.Acquire({rank, static_cast<uint64_t>(rank)}, true); }
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

  LockManager locks_;
};

using Ranks = std::vector<int>;

TEST_F(LockManagerTest, AskingTellsWhatAcquiringWouldAndChangesNothing) {
  EXPECT_EQ(locks_.Ask(0, true), Outcome::kGranted);
  EXPECT_FALSE(locks_.held());
  Shared(1);
  EXPECT_EQ(locks_.Ask(0, false), Outcome::kGranted);
  EXPECT_EQ(locks_.Ask(0, true), Outcome::kQueued);
  EXPECT_EQ(locks_.Ask(1, false), Outcome::kRefused) << "it has the lock";
  Exclusive(2);
  EXPECT_EQ(locks_.Ask(0, false), Outcome::kQueued) << "behind the one that waits for exclusive use";
  EXPECT_EQ(locks_.Ask(2, true), Outcome::kRefused) << "it waits already";
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

}  // namespace
}  // namespace weft::mpi::rma
