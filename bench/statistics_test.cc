#include "bench/statistics.h"

#include <gtest/gtest.h>

namespace weft::bench {
namespace {

TEST(StatisticsTest, MedianOfOddAndEvenNumbersOfValues) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

TEST(StatisticsTest, QuantilesAreElements) {
  EXPECT_EQ(Quantile({5, 1, 4, 2, 3}, 0), 1);
  EXPECT_EQ(Quantile({5, 1, 4, 2, 3}, 0.5), 3);
  EXPECT_EQ(Quantile({5, 1, 4, 2, 3}, 1), 5);
}

TEST(StatisticsTest, RatioOfPairsIgnoresAMachineThatSlowsDown) {
  EXPECT_EQ(MedianRatio({2, 4, 20, 40, 80}, {1, 2, 10, 20, 40}), 2);
}

TEST(StatisticsTest, RatioOfPairsIgnoresOneDisturbance) { EXPECT_EQ(MedianRatio({2, 90, 2}, {1, 1, 1}), 2); }

}  // namespace
}  // namespace weft::bench
