#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
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

}  // namespace
}  // namespace weft
