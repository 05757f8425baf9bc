#include "pmi/launch/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace weft::pmi {
namespace {

using Clock = OutputMerger::Clock;
constexpr Clock::time_point kStart{};

// All that the merger has, through a pipe.
std::string Written(OutputMerger& merger) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_NONBLOCK), 0);
  std::string all;
  while (merger.unwritten() != 0) {
    EXPECT_EQ(merger.WriteTo(ends[1]), 0);
    char block[65536];
    for (ssize_t count; (count = read(ends[0], block, sizeof(block))) > 0;) all.append(block, static_cast<size_t>(count));
  }
  close(ends[0]);
  close(ends[1]);
  return all;
}

TEST(OutputMerger, PassesWholeLinesAtOnce) {
  OutputMerger merger(false);
  merger.Add(1, "a\nb\n", kStart);
  EXPECT_EQ(Written(merger), "a\nb\n");
}

TEST(OutputMerger, LinesOfTwoRanksDoNotMix) {
  OutputMerger merger(false);
  merger.Add(1, "one ", kStart);
  merger.Add(2, "two ", kStart);
  merger.Add(1, "more\nrest", kStart);
  merger.Add(2, "more\n", kStart);
  EXPECT_EQ(Written(merger), "one more\ntwo more\n");
  merger.Finish(1);
  EXPECT_EQ(Written(merger), "rest") << "the end of a rank is the end of its line, without a line end of ours";
}

TEST(OutputMerger, LabelsEachLine) {
  OutputMerger merger(true);
  merger.Add(3, "a\n\nb", kStart);
  merger.Add(12, "c\n", kStart);
  merger.Finish(3);
  EXPECT_EQ(Written(merger), "[3] a\n[3] \n[12] c\n[3] b");
}

TEST(OutputMerger, ALineEndStandsBetweenAnUnfinishedLineAndAnotherRank) {
  OutputMerger merger(true);
  merger.Add(1, "a", kStart);
  merger.Finish(1);
  merger.Add(2, "b\n", kStart);
  EXPECT_EQ(Written(merger), "[1] a\n[2] b\n");
}

TEST(OutputMerger, ShowsAPromptOfRank0AfterAMoment) {
  OutputMerger merger(false);
  merger.Add(1, "not this", kStart);
  merger.Add(0, "number? ", kStart);
  ASSERT_TRUE(merger.deadline());
  merger.Tick(*merger.deadline() - std::chrono::milliseconds(1));
  EXPECT_EQ(Written(merger), "");
  merger.Tick(*merger.deadline());
  EXPECT_EQ(Written(merger), "number? ");
  EXPECT_FALSE(merger.deadline());
  merger.Add(0, "thanks\n", kStart);
  EXPECT_EQ(Written(merger), "thanks\n");
}

TEST(OutputMerger, AFinishedLineIsNoPrompt) {
  OutputMerger merger(false);
  merger.Add(0, "a", kStart);
  merger.Add(0, "b\n", kStart);
  EXPECT_FALSE(merger.deadline());
}

TEST(OutputMerger, DoesNotKeepLinesWithoutBound) {
  OutputMerger merger(false);
  merger.Add(1, std::string(OutputMerger::kLongestLine, 'x'), kStart);
  EXPECT_EQ(merger.unwritten(), 0u);
  merger.Add(1, "x", kStart);
  EXPECT_EQ(Written(merger).size(), OutputMerger::kLongestLine + 1);
}

TEST(OutputMerger, OwnLinesHaveNoLabel) {
  OutputMerger merger(true);
  merger.Add(1, "a", kStart);
  merger.Finish(1);
  merger.AddOwnLine("mpiexec: b");
  EXPECT_EQ(Written(merger), "[1] a\nmpiexec: b\n");
}

TEST(OutputMerger, ReportsAFullDisk) {
  OutputMerger merger(false);
  merger.Add(1, "a\n", kStart);
  const int full = open("/dev/full", O_WRONLY);
  EXPECT_EQ(merger.WriteTo(full), ENOSPC);
  close(full);
  merger.Discard();
  merger.Add(1, "b\n", kStart);
  EXPECT_EQ(merger.unwritten(), 0u);
}

TEST(OutputMerger, LabelsOfSpawnedJobsNameTheJob) {
  OutputMerger merger(true);
  merger.Add(0, "a\n", {});
  merger.Add({0, 2}, "b\n", {});
  merger.Add({1, 2}, "c", {});
  EXPECT_FALSE(merger.deadline()) << "a prompt is of the first job's rank 0";
  merger.Finish({1, 2});
  merger.Finish(1);
  EXPECT_EQ(Written(merger), "[0] a\n[job 2 rank 0] b\n[job 2 rank 1] c");
}

}  // namespace
}  // namespace weft::pmi
