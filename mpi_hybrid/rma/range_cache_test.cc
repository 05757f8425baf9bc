#include "mpi_hybrid/rma/range_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

namespace weft::mpi::rma {
namespace {

constexpr size_t kPage = 4096;

RangeCache::Key KeyOf(std::vector<int> places, size_t own_bytes = kPage) { return {std::move(places), own_bytes}; }

RangeCache::Range RangeAt(uint64_t offset) {
  void* const at = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {.offset = offset, .starts = {}, .mapping = host::Mapping(at, kPage), .processes = {}};
}

std::vector<uint64_t> OffsetsOf(const RangeCache::Ranges& ranges) {
  std::vector<uint64_t> offsets;
  for (const RangeCache::Range& range : ranges) offsets.push_back(range.offset);
  return offsets;
}

TEST(RangeCacheTest, OffersTheLastRangesOfTheSameRanksAndTheSameLength) {
  RangeCache cache;
  for (uint64_t offset = 1; offset <= 6; ++offset) EXPECT_TRUE(cache.Add(KeyOf({0, 1}), RangeAt(offset)).empty());
  cache.Add(KeyOf({1, 0}), RangeAt(7));
  cache.Add(KeyOf({0, 1}, 2 * kPage), RangeAt(8));
  EXPECT_TRUE(cache.TakeOffers(KeyOf({0, 2})).empty());
  EXPECT_EQ(OffsetsOf(cache.TakeOffers(KeyOf({0, 1}))), (std::vector<uint64_t>{6, 5, 4}));
  // Those are the caller's now, and nobody else's.
  EXPECT_EQ(OffsetsOf(cache.TakeOffers(KeyOf({0, 1}))), (std::vector<uint64_t>{3, 2, 1}));
  EXPECT_TRUE(cache.TakeOffers(KeyOf({0, 1})).empty());
  EXPECT_EQ(cache.ranges(), 2u);
}

TEST(RangeCacheTest, TheOldestRangeOfAnyRanksLeavesForANewOne) {
  RangeCache cache;
  cache.Add(KeyOf({0, 5}), RangeAt(1));
  uint64_t offset = 1;
  while (cache.HasRoom(kPage)) EXPECT_TRUE(cache.Add(KeyOf({0, 1}), RangeAt(++offset)).empty());
  EXPECT_EQ(cache.ranges(), RangeCache::kMostRanges);
  for (const auto& [place, leaves] : {std::pair{5, uint64_t{1}}, std::pair{1, uint64_t{2}}}) {
    const auto leaving = cache.Add(KeyOf({0, 1}), RangeAt(++offset));
    ASSERT_EQ(leaving.size(), 1u);
    EXPECT_EQ(leaving[0].first[1], place);
    EXPECT_EQ(leaving[0].second.offset, leaves);
  }
  EXPECT_EQ(cache.ranges(), RangeCache::kMostRanges);
}

TEST(RangeCacheTest, MemoryIsLimited) {
  RangeCache cache;
  const auto leaving = cache.Add(KeyOf({0, 1}, RangeCache::kMostOfPart + kPage), RangeAt(1));
  ASSERT_EQ(leaving.size(), 1u);
  EXPECT_EQ(leaving[0].second.offset, 1u);
  constexpr size_t kMost = RangeCache::kMostOfParts / RangeCache::kMostOfPart;
  for (uint64_t offset = 1; offset <= 3 * kMost; ++offset) cache.Add(KeyOf({0, 1}, RangeCache::kMostOfPart), RangeAt(offset));
  EXPECT_EQ(cache.ranges(), kMost);
  // A long one takes the place of several.
  for (uint64_t offset = 1; offset <= RangeCache::kMostRanges; ++offset) cache.Add(KeyOf({0, 1}), RangeAt(offset));
  const size_t before = cache.ranges();
  EXPECT_GT(cache.Add(KeyOf({0, 1}, RangeCache::kMostOfPart), RangeAt(1000)).size(), 1u);
  EXPECT_LT(cache.ranges(), before);
  cache.Clear();
  EXPECT_EQ(cache.ranges(), 0u);
}

}  // namespace
}  // namespace weft::mpi::rma
