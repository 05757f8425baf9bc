#include "base/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace weft {
namespace {

TEST(BufferPoolTest, LendsAReturnedBlockAgain) {
  BufferPool pool;
  uint8_t* block = nullptr;
  {
    const BufferPool::Lease lease = pool.Take();
    ASSERT_TRUE(lease);
    block = lease.data();
    EXPECT_EQ(lease.bytes().size(), BufferPool::kBlockSize);
  }
  EXPECT_EQ(pool.Take().data(), block);
}

TEST(BufferPoolTest, NeverLendsABlockTwiceAtATime) {
  BufferPool pool;
  std::vector<BufferPool::Lease> leases;
  std::set<uint8_t*> blocks;
  for (int i = 0; i < 40; ++i) {
    leases.push_back(pool.Take());
    EXPECT_TRUE(blocks.insert(leases.back().data()).second);
  }
}

TEST(BufferPoolTest, ALeaseMovesWithItsBlock) {
  BufferPool pool;
  BufferPool::Lease first = pool.Take();
  uint8_t* const block = first.data();
  BufferPool::Lease second = std::move(first);
  EXPECT_EQ(second.data(), block);
  first = pool.Take();
  EXPECT_NE(first.data(), block);
  first = std::move(second);  // gives its own back
  EXPECT_EQ(first.data(), block);
  first.Reset();
  EXPECT_FALSE(first);
}

TEST(BufferPoolTest, ServesSeveralThreads) {
  BufferPool pool(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 2000; ++i) {
        const BufferPool::Lease lease = pool.Take();
        std::memset(lease.data(), t, 64);
        for (int k = 0; k < 64; ++k) ASSERT_EQ(lease.data()[k], t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(BufferPoolTest, AThreadGetsItsOwnBlocksBackAndOthersDoNot) {
  BufferPool pool(0);  // keeps none itself
  const auto one_at_a_time = [&pool] {
    uint8_t* const first = pool.Take().data();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(pool.Take().data(), first);
    return first;
  };
  uint8_t* const ours = one_at_a_time();
  uint8_t* theirs = nullptr;
  std::thread([&] { theirs = one_at_a_time(); }).join();
  EXPECT_NE(theirs, ours);
  EXPECT_EQ(one_at_a_time(), ours);
}

TEST(BufferPoolTest, ABlockMayBeGivenBackByAnotherThreadAndAsAThreadEnds) {
  BufferPool pool;
  for (int i = 0; i < 100; ++i) {
    std::vector<BufferPool::Lease> leases;
    for (int n = 0; n < 5; ++n) leases.push_back(pool.Take());
    std::thread([back = std::move(leases)]() mutable { back.clear(); }).join();
  }
}

}  // namespace
}  // namespace weft
