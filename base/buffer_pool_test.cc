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

}  // namespace
}  // namespace weft
