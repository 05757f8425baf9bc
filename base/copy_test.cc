#include "base/copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weft {
namespace {

constexpr size_t kPage = 4096, kRoom = 6 * kPage;
constexpr size_t kOffsets[] = {0, 1, 16, 31, 32, 33, 2048, 4095};
constexpr size_t kLengths[] = {0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 9999};

std::vector<uint8_t> Counted() {
  std::vector<uint8_t> bytes(kRoom);
  for (size_t i = 0; i < kRoom; ++i) bytes[i] = static_cast<uint8_t>(i % 251);
  return bytes;
}

TEST(CopyTest, CopiesJustTheBytesAtAllOffsetsWithinAPage) {
  const std::vector<uint8_t> from = Counted();
  for (const size_t source : kOffsets) {
    for (const size_t target : kOffsets) {
      for (const size_t length : kLengths) {
        std::vector<uint8_t> to(kRoom, 255), wanted = to;
        std::memcpy(wanted.data() + target, from.data() + source, length);
        CopyBytes(to.data() + target, from.data() + source, length);
        ASSERT_EQ(to, wanted) << source << " to " << target << ", " << length << " bytes";
      }
    }
  }
}

TEST(CopyTest, CopiesShortPiecesOfEveryLength) {
  const std::vector<uint8_t> from = Counted();
  for (size_t length = 0; length < 40; ++length) {
    for (size_t offset = 0; offset < 9; ++offset) {
      std::vector<uint8_t> to(64, 255), wanted = to;
      std::memcpy(wanted.data() + offset, from.data() + 3, length);
      CopyShortBytes(to.data() + offset, from.data() + 3, length);
      ASSERT_EQ(to, wanted) << length << " bytes to " << offset;
    }
  }
  CopyShortBytes(nullptr, nullptr, 0);
}

TEST(CopyTest, CopiesTheLastWordWhereverItEnds) {
  const std::vector<uint8_t> from = Counted();
  for (const size_t length : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 2048, 2049, 2057, 4096, 9999}) {
    for (size_t offset = 0; offset < 9; ++offset) {
      std::vector<uint8_t> to(kRoom, 255), wanted = to;
      std::memcpy(wanted.data() + offset, from.data() + 3, length);
      CopyEndLast(to.data() + offset, from.data() + 3, length);
      ASSERT_EQ(to, wanted) << length << " bytes to " << offset;
    }
  }
  CopyEndLast(nullptr, nullptr, 0);
}

TEST(CopyTest, WhoFindsTheLastWordHasAllBytes) {
  constexpr uint64_t kRounds = 5000;
  constexpr size_t kWords = 9;
  alignas(8) uint64_t shared[kWords] = {};
  std::atomic<uint64_t> read{0};
  uint64_t torn = 0;
  std::thread reader([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      while (std::atomic_ref(shared[kWords - 1]).load(std::memory_order_acquire) != round) std::this_thread::yield();
      for (size_t i = 0; i + 1 < kWords; ++i) torn += shared[i] != round;
      read.store(round, std::memory_order_release);
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const std::vector<uint64_t> words(kWords, round);
    CopyEndLast(shared, words.data(), sizeof shared);
    while (read.load(std::memory_order_acquire) != round) std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(torn, 0u);
}

TEST(CopyTest, MovesShortPiecesThatOverlap) {
  for (size_t length = 0; length < 40; ++length) {
    for (size_t offset = 0; offset < 9; ++offset) {
      std::vector<uint8_t> moved = Counted(), wanted = moved;
      std::memmove(wanted.data() + offset, wanted.data() + 4, length);
      MoveShortBytes(moved.data() + offset, moved.data() + 4, length);
      ASSERT_EQ(moved, wanted) << length << " bytes to " << offset;
    }
  }
}

TEST(CopyTest, MovesWhatOverlaps) {
  for (const size_t source : kOffsets) {
    for (const size_t target : kOffsets) {
      for (const size_t length : kLengths) {
        std::vector<uint8_t> moved = Counted(), wanted = moved;
        std::memmove(wanted.data() + target, wanted.data() + source, length);
        MoveBytes(moved.data() + target, moved.data() + source, length);
        ASSERT_EQ(moved, wanted) << source << " to " << target << ", " << length << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace weft
