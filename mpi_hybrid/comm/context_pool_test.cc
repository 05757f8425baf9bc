#include "mpi_hybrid/comm/context_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace weft::mpi {
namespace {

// The reduction that the processes of one agreement do.
void ReduceAnd(const std::vector<std::span<uint64_t>>& masks) {
  for (size_t i = 0; i < masks[0].size(); ++i) {
    uint64_t all = ~uint64_t{0};
    for (const auto& mask : masks) all &= mask[i];
    for (const auto& mask : masks) mask[i] = all;
  }
}

using Outcome = ContextSearch::Outcome;

// One agreement of the processes whose pools these are, to its end; -1: exhausted.
int64_t Agree(const std::vector<ContextPool*>& pools, uint64_t seed) {
  std::vector<std::unique_ptr<ContextSearch>> searches;
  for (ContextPool* pool : pools) searches.push_back(std::make_unique<ContextSearch>(*pool, seed, 1));
  for (;;) {
    std::vector<std::span<uint64_t>> masks;
    for (auto& search : searches) masks.push_back(search->Begin());
    ReduceAnd(masks);
    Outcome outcome = Outcome::kAgain;
    for (auto& search : searches) outcome = search->End();
    if (outcome == Outcome::kExhausted) return -1;
    if (outcome == Outcome::kAgain) continue;
    for (auto& search : searches) EXPECT_EQ(search->ids(), searches[0]->ids());
    return searches[0]->ids()[0];
  }
}

TEST(ContextPoolTest, NeverGivesTheIdsOfWorldAndSelfAndPorts) {
  ContextPool pool;
  EXPECT_FALSE(pool.IsFree(0));
  EXPECT_FALSE(pool.IsFree(1));
  EXPECT_FALSE(pool.IsFree(ContextPool::kPorts));
  EXPECT_FALSE(pool.IsFree(ContextPool::kGroups));
  EXPECT_TRUE(pool.IsFree(ContextPool::kFirstFree));
}

TEST(ContextPoolTest, GivesEveryIdOnceAndThenSaysSo) {
  ContextPool a, b;
  std::set<int64_t> given;
  for (size_t i = ContextPool::kFirstFree; i < ContextPool::kWords * 64; ++i) {
    const int64_t id = Agree({&a, &b}, i);
    ASSERT_GE(id, ContextPool::kFirstFree);
    ASSERT_TRUE(given.insert(id).second) << id;
  }
  EXPECT_EQ(Agree({&a, &b}, 1), -1);
  a.Release(4711);
  EXPECT_EQ(Agree({&a, &b}, 1), -1);  // the other still uses it
  b.Release(4711);
  EXPECT_EQ(Agree({&a, &b}, 1), 4711);
}

TEST(ContextPoolTest, AgreementsUnderWayAtOnceGetDifferentIds) {
  // Two processes, two agreements with the same seed, begun in opposite orders.
  ContextPool p, q;
  ContextSearch p1(p, 5, 1), p2(p, 5, 1), q1(q, 5, 1), q2(q, 5, 1);
  auto p1_mask = p1.Begin();
  auto p2_mask = p2.Begin();  // gets nothing: all is with p1
  auto q2_mask = q2.Begin();
  auto q1_mask = q1.Begin();
  ReduceAnd({p1_mask, q1_mask});
  ReduceAnd({p2_mask, q2_mask});
  EXPECT_EQ(p1.End(), Outcome::kAgain);
  EXPECT_EQ(q1.End(), Outcome::kAgain);
  EXPECT_EQ(p2.End(), Outcome::kAgain);
  EXPECT_EQ(q2.End(), Outcome::kAgain);
  p1_mask = p1.Begin();
  q1_mask = q1.Begin();
  ReduceAnd({p1_mask, q1_mask});
  EXPECT_EQ(p1.End(), Outcome::kAgreed);
  EXPECT_EQ(q1.End(), Outcome::kAgreed);
  p2_mask = p2.Begin();
  q2_mask = q2.Begin();
  ReduceAnd({p2_mask, q2_mask});
  EXPECT_EQ(p2.End(), Outcome::kAgreed);
  EXPECT_EQ(q2.End(), Outcome::kAgreed);
  EXPECT_EQ(p1.ids(), q1.ids());
  EXPECT_EQ(p2.ids(), q2.ids());
  EXPECT_NE(p1.ids(), p2.ids());
}

TEST(ContextPoolTest, AnAgreementThatNobodyFinishesHoldsUpNoOther) {
  ContextPool p, q;
  ContextSearch pending(p, 5, 1);  // MPI_Comm_idup that the other process has not called yet
  pending.Begin();
  for (int i = 0; i < 1000; ++i) EXPECT_GE(Agree({&p, &q}, 5), 0);
}

TEST(ContextPoolTest, SeveralIdsAreDistinctAndReturn) {
  ContextPool pool;
  std::vector<uint32_t> ids;
  {
    ContextSearch search(pool, 9, 2);
    search.Begin();
    ASSERT_EQ(search.End(), Outcome::kAgreed);
    ids = search.ids();
  }
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(ids[0], ids[1]);
  for (uint32_t id : ids) {
    EXPECT_FALSE(pool.IsFree(id));
    pool.Release(id);
    EXPECT_TRUE(pool.IsFree(id));
  }
}

TEST(ContextPoolTest, AnAbandonedSearchGivesBackWhatItProposed) {
  ContextPool pool;
  { ContextSearch(pool, 3, 1).Begin(); }
  for (uint32_t id = ContextPool::kFirstFree; id < ContextPool::kWords * 64; ++id) ASSERT_TRUE(pool.IsFree(id));
}

}  // namespace
}  // namespace weft::mpi
