#include "base/buffer_pool.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

// Blocks that were allocated and freed: one that was freed often comes back at the same address, so that addresses alone do not tell.
static std::atomic<int> blocks_made{0}, blocks_freed{0};

void* operator new[](size_t size) {
  if (size >= weft::BufferPool::kBlockSize) ++blocks_made;
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete[](void* memory) noexcept {
  if (memory != nullptr && malloc_usable_size(memory) >= weft::BufferPool::kBlockSize) ++blocks_freed;
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept { operator delete[](memory); }

namespace weft {
namespace {

// Since it was made.
class Allocations {
 public:
  int count() const { return blocks_made - made_; }
  int frees() const { return blocks_freed - freed_; }

 private:
  const int made_ = blocks_made, freed_ = blocks_freed;
};

TEST(BufferPoolTest, LendsAReturnedBlockAgain) {
  BufferPool pool;
  uint8_t* block = nullptr;
  {
    const BufferPool::Lease lease = pool.Take();
    ASSERT_TRUE(lease);
    block = lease.data();
    EXPECT_EQ(lease.bytes().size(), BufferPool::kBlockSize);
  }
  const Allocations counted;
  EXPECT_EQ(pool.Take().data(), block);
  EXPECT_EQ(counted.count(), 0);
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
    const Allocations counted;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(pool.Take().data(), first);
    EXPECT_EQ(counted.count(), 0);
    return first;
  };
  uint8_t* const ours = one_at_a_time();
  uint8_t* theirs = nullptr;
  std::thread([&] { theirs = one_at_a_time(); }).join();
  EXPECT_NE(theirs, ours);
  EXPECT_EQ(one_at_a_time(), ours);
}

TEST(BufferPoolTest, ABlockMayBeGivenBackByAnotherThreadAndAsAThreadEnds) {
  constexpr int kRounds = 100, kBlocks = 5;
  BufferPool pool(2);
  const BufferPool::Lease ours[] = {pool.Take(), pool.Take()};  // what this thread has kept so far
  const Allocations counted;
  for (int i = 0; i < kRounds; ++i) {
    std::vector<BufferPool::Lease> leases;
    for (int n = 0; n < kBlocks; ++n) leases.push_back(pool.Take());
    std::thread([back = std::move(leases)]() mutable { back.clear(); }).join();
  }
  // The pool keeps two. Each thread takes two along as it ends, and there is no room for one.
  EXPECT_EQ(counted.count(), kBlocks + 3 * (kRounds - 1));
  EXPECT_EQ(counted.frees(), 3 * kRounds);
}

}  // namespace
}  // namespace weft
