#include "base/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace weft {
namespace {

TEST(LogTest, FormatsShortAndLongText) {
  EXPECT_EQ(Format("%d-%s", 7, "x"), "7-x");
  EXPECT_EQ(Format("%s", "").size(), 0u);
  for (size_t length : {254, 255, 256, 257, 5000}) {
    std::string text(length, 'a');
    EXPECT_EQ(Format("%s", text.c_str()), text);
  }
}

TEST(LogTest, WarningIsOneLineAndLeavesErrnoAlone) {
  testing::internal::CaptureStderr();
  errno = EBUSY;
  LogWarning("two\nlines");
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "weft: two lines\n");
}

TEST(LogTest, AFloodFromOnePlaceIsCutShortAndATextIsNot) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) LogWarning(Format("peer %d", i));
  LogWarning("another place");
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line\n";
  LogLines(text);
  const std::string all = testing::internal::GetCapturedStderr();
  const auto lines = static_cast<size_t>(std::count(all.begin(), all.end(), '\n'));
  EXPECT_GE(lines, 10u + 1 + 100);
  EXPECT_LT(lines, 200u);
  EXPECT_NE(all.find("weft: another place\n"), all.npos);
}

TEST(LogTest, TraceLineCarriesTimeAndProcess) {
  testing::internal::CaptureStderr();
  Trace("hello");
  std::string line = testing::internal::GetCapturedStderr();
  long long seconds = 0;
  int micros = 0, pid = 0;
  char word[16] = "";
  EXPECT_EQ(sscanf(line.c_str(), "weft: %lld.%6d [%d] %15s", &seconds, &micros, &pid, word), 4) << line;
  EXPECT_EQ(pid, getpid());
  EXPECT_STREQ(word, "hello");
}

// As in a program whose stderr is a pipe that nobody reads: it goes on, and ends.
TEST(LogTest, AFullPipeHoldsNobodyUp) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    dup2(ends[1], STDERR_FILENO);
    for (int i = 0; i < 5000; ++i) Trace(std::string(200, 'x'));  // a megabyte
    LogWarning("done");
    exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace weft
