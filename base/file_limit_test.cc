#include "base/file_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace weft {
namespace {

TEST(FileLimitTest, SoftLimitRisesToTheHardOneAndTheOldOneIsTold) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_GT(limit.rlim_max, 100u);
  limit.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(RaiseFileLimit().rlim_cur, 100u);
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, std::min(limit.rlim_max, kMostFiles));
  EXPECT_EQ(RaiseFileLimit().rlim_cur, 100u);
}

TEST(FileLimitTest, FilesOfUpToTheLimitOfTheirLengthMayBeMade) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const bool within = MayMakeFile(4096), beyond = MayMakeFile(4097);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);  // before anything is said in a file
  EXPECT_TRUE(within);
  EXPECT_FALSE(beyond);
}

TEST(FileLimitTest, MessageNamesTheLimitThatWasMet) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(DescribeShortage(EMFILE),
            "Too many open files (the limit is " + std::to_string(limit.rlim_cur) + ", see ulimit -n)");
  EXPECT_TRUE(IsShortage(ENFILE));
  EXPECT_FALSE(IsShortage(ECONNREFUSED));
  EXPECT_FALSE(IsShortage(EAGAIN)) << "nobody waits to be accepted";
}

}  // namespace
}  // namespace weft
