#include "transport/sctp/usrsctp/pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

extern "C" {
void* weft_usrsctp_calloc(size_t count, size_t bytes);
void weft_usrsctp_free(void* memory);
}

namespace weft::transport::sctp {
namespace {

TEST(Pool, WhatIsInUseIsNobodyElses) {
  std::mt19937_64 random(1);
  std::vector<std::pair<uint8_t*, size_t>> used;
  for (int i = 0; i < 100'000; ++i) {
    if (used.size() < 500 && random() % 2 == 0) {
      const size_t bytes = random() % 3000;
      auto* const memory = static_cast<uint8_t*>(PoolAllocate(bytes));
      ASSERT_NE(memory, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % alignof(std::max_align_t), 0u);
      std::memset(memory, static_cast<int>(bytes % 251), bytes);
      used.emplace_back(memory, bytes);
    } else if (!used.empty()) {
      std::swap(used[random() % used.size()], used.back());
      const auto [memory, bytes] = used.back();
      used.pop_back();
      for (size_t at = 0; at < bytes; ++at) ASSERT_EQ(memory[at], bytes % 251);
      PoolFree(memory);
    }
  }
  for (const auto& [memory, bytes] : used) PoolFree(memory);
}

TEST(Pool, WhatIsKeptIsBounded) {
  std::vector<void*> used;
  for (size_t bytes = 0; bytes < 4 * kMostKept; bytes += 2048) used.push_back(PoolAllocate(2048));
  for (void* memory : used) PoolFree(memory);
  EXPECT_LE(PoolKept(), kMostKept);
  PoolFree(nullptr);
}

TEST(Pool, MemoryThatIsWantedClearedIsCleared) {
  void* const dirty = PoolAllocate(300);
  std::memset(dirty, 1, 300);
  PoolFree(dirty);
  auto* const clean = static_cast<uint8_t*>(weft_usrsctp_calloc(3, 100));
  for (int i = 0; i < 300; ++i) ASSERT_EQ(clean[i], 0);
  weft_usrsctp_free(clean);
  EXPECT_EQ(weft_usrsctp_calloc(SIZE_MAX / 2, 3), nullptr);
  EXPECT_EQ(PoolAllocate(SIZE_MAX - 8), nullptr);
}

}  // namespace
}  // namespace weft::transport::sctp
