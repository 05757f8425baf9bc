#include "mpi_hybrid/rma/free_space.h"

#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <map>
#include <random>

namespace weft::mpi::rma {
namespace {

TEST(FreeSpaceTest, TakesTheSmallestPartThatHasRoom) {
  FreeSpace space(4096, 1000);
  EXPECT_EQ(space.Take(100, 1), 4096u);
  EXPECT_EQ(space.Take(300, 1), 4196u);
  EXPECT_EQ(space.Take(100, 1), 4496u);
  space.Give(4196, 300);
  EXPECT_EQ(space.Take(250, 1), 4196u);
  EXPECT_EQ(space.Take(501, 1), std::nullopt);
}

TEST(FreeSpaceTest, AlignsAddressesAndKeepsWhatIsInFront) {
  FreeSpace space(4096 + 64, 8192);
  EXPECT_EQ(space.Take(4096, 4096), 8192u);
  EXPECT_EQ(space.Take(64, 64), 4096u + 64 + 8192 - 64) << "the part behind is the smaller one";
  EXPECT_EQ(space.Take(4032, 64), 4096u + 64);
  EXPECT_EQ(space.Take(1, 1), std::nullopt);
}

TEST(FreeSpaceTest, JoinsNeighboursInWhicheverOrderTheyComeBack) {
  for (const auto& order : {std::array{0, 1, 2}, std::array{0, 2, 1}, std::array{1, 0, 2}, std::array{2, 1, 0}}) {
    FreeSpace space(0, 300);
    EXPECT_TRUE(space.all_free());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(space.Take(100, 1), 100u * static_cast<unsigned>(i));
    EXPECT_FALSE(space.all_free());
    for (const int part : order) space.Give(100u * static_cast<unsigned>(part), 100);
    EXPECT_TRUE(space.all_free());
    EXPECT_EQ(space.Take(300, 1), 0u);
  }
}

TEST(FreeSpaceTest, GivesNothingTwiceAndLosesNothing) {
  std::mt19937 random(7);
  FreeSpace space(1 << 12, 1 << 16);
  std::map<uint64_t, uint64_t> taken;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const uint64_t bytes = 1 + random() % 2000, alignment = uint64_t{1} << random() % 10;
      const auto at = space.Take(bytes, alignment);
      if (!at) continue;
      ASSERT_EQ(*at % alignment, 0u);
      ASSERT_GE(*at, uint64_t{1} << 12);
      ASSERT_LE(*at + bytes, (uint64_t{1} << 12) + (1 << 16));
      const auto behind = taken.lower_bound(*at);
      ASSERT_TRUE(behind == taken.end() || *at + bytes <= behind->first);
      ASSERT_TRUE(behind == taken.begin() || std::prev(behind)->first + std::prev(behind)->second <= *at);
      taken[*at] = bytes;
    } else if (!taken.empty()) {
      const auto one = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      space.Give(one->first, one->second);
      taken.erase(one);
    }
  }
  for (const auto& [at, bytes] : taken) space.Give(at, bytes);
  EXPECT_TRUE(space.all_free());
}

}  // namespace
}  // namespace weft::mpi::rma
