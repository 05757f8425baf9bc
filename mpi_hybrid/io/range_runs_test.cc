#include "mpi_hybrid/io/range_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weft::mpi::io {
namespace {

std::vector<RangeRun> RunsOf(const std::vector<FileRange>& ranges) {
  RunWriter writer;
  for (const FileRange& range : ranges) writer.Add(range);
  return writer.runs();
}

std::vector<std::pair<int64_t, int64_t>> Merge(const std::vector<std::vector<RangeRun>>& lists, int64_t gap = 0) {
  MergedRanges merged({lists.begin(), lists.end()}, gap);
  std::vector<std::pair<int64_t, int64_t>> all;
  for (FileRange range; merged.Next(&range);) all.emplace_back(range.offset, range.end());
  return all;
}

TEST(RangeRuns, EquallySpacedRangesAreOneRun) {
  const std::vector<RangeRun> runs = RunsOf({{10, 4}, {20, 4}, {30, 4}, {41, 4}, {50, 5}});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].count, 3);
  EXPECT_EQ(runs[0].stride, 10);
  EXPECT_EQ(runs[1].offset, 41);
  EXPECT_EQ(runs[2].bytes, 5);
}

TEST(RangeRuns, MergingFindsWhatIsCoveredWithoutGaps) {
  EXPECT_EQ(Merge({RunsOf({{0, 4}, {8, 4}}), RunsOf({{4, 4}, {20, 4}})}), (std::vector<std::pair<int64_t, int64_t>>{{0, 12}, {20, 24}}));
  EXPECT_EQ(Merge({RunsOf({{0, 10}}), RunsOf({{2, 2}, {9, 3}})}), (std::vector<std::pair<int64_t, int64_t>>{{0, 12}}));
  EXPECT_EQ(Merge({RunsOf({{0, 4}, {8, 4}})}, 4), (std::vector<std::pair<int64_t, int64_t>>{{0, 12}}));
  EXPECT_TRUE(Merge({{}, {}}).empty());
}

// Two ranks write the same and leave as large a hole: the sum of their bytes says nothing.
TEST(RangeRuns, OverlapsDoNotHideHoles) {
  EXPECT_EQ(Merge({RunsOf({{0, 8}, {16, 8}}), RunsOf({{0, 8}})}), (std::vector<std::pair<int64_t, int64_t>>{{0, 8}, {16, 24}}));
}

TEST(RangeRuns, WhatIsOutsideOfTheWindowIsRefused) {
  const FileRange window = {100, 50};
  EXPECT_TRUE(AreWithin(RunsOf({{100, 10}, {120, 10}, {140, 10}}), window));
  EXPECT_FALSE(AreWithin(RunsOf({{99, 10}}), window));
  EXPECT_FALSE(AreWithin(RunsOf({{141, 10}}), window));
  EXPECT_FALSE(AreWithin(std::vector<RangeRun>{{100, 10, 1 << 20, INT64_MAX / 2}}, window));
  EXPECT_FALSE(AreWithin(std::vector<RangeRun>{{100, -10, 1, 0}}, window));
  EXPECT_FALSE(AreWithin(std::vector<RangeRun>{{100, 10, 0, 0}}, window));
  EXPECT_FALSE(AreWithin(std::vector<RangeRun>{{INT64_MAX, 10, 1, 0}}, window));
  EXPECT_FALSE(AreWithin(std::vector<RangeRun>{{120, 10, 1, 0}, {110, 10, 1, 0}}, window));
}

TEST(RangeRuns, RandomListsMergeAsByteByByte) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
    std::vector<std::vector<RangeRun>> lists;
    std::vector<bool> covered(600);
    for (int64_t n = number(1, 5); n > 0; --n) {
      std::vector<FileRange> ranges;
      for (int64_t at = number(0, 20); at < 500; at += number(1, 40)) {
        const int64_t bytes = number(1, 12);
        ranges.push_back({at, bytes});
        std::fill_n(covered.begin() + at, bytes, true);
        at += bytes;
      }
      lists.push_back(RunsOf(ranges));
    }
    std::vector<bool> merged(600);
    for (const auto& [begin, end] : Merge(lists)) std::fill(merged.begin() + begin, merged.begin() + end, true);
    ASSERT_EQ(merged, covered);
  }
}

}  // namespace
}  // namespace weft::mpi::io
