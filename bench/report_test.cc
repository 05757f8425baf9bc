#include "bench/report.h"

#include <gtest/gtest.h>

namespace weft::bench {
namespace {

TEST(ReportTest, ATargetSaysWhetherItIsReached) {
  Report report;
  report.Add({.name = "64 B ping-pong polling", .value = 1.08, .unit = "x raw", .at_most = true, .limit = 1.15});
  report.Add({.name = "64 B Writes", .value = 1.2, .unit = " million/s", .at_most = false, .limit = 1.5});
  EXPECT_NE(report.ToString().find("64 B ping-pong polling: 1.08x raw (target <= 1.15) ok\n"), std::string::npos);
  EXPECT_NE(report.ToString().find("64 B Writes: 1.20 million/s (target >= 1.5) MISSED\n"), std::string::npos);
}

TEST(ReportTest, TheLimitItselfIsReached) {
  EXPECT_TRUE(IsReached({.name = "", .value = 2, .unit = "", .at_most = true, .limit = 2}));
  EXPECT_TRUE(IsReached({.name = "", .value = 2, .unit = "", .at_most = false, .limit = 2}));
}

TEST(ReportTest, SectionsKeepTheirOrder) {
  Report report;
  report.Add("zebra", {.name = "first", .raw = 1, .weft = 2, .ratio = 2, .note = ""});
  report.Add("ant", {.name = "second", .raw = 1, .weft = 2, .ratio = 2, .note = ""});
  report.Add("zebra", {.name = "third", .raw = 100, .weft = 12.34, .ratio = 0.1234, .note = "note"});
  const std::string text = report.ToString();
  EXPECT_LT(text.find("third"), text.find("ant"));
  EXPECT_NE(text.find("100       12.3     0.12   note\n"), std::string::npos) << text;
}

TEST(ReportTest, AFailureIsNamed) {
  Report report;
  EXPECT_FALSE(report.failed());
  report.AddFailure("Connect", "no answer in 20 s");
  EXPECT_TRUE(report.failed());
  EXPECT_NE(report.ToString().find("Connect: no answer in 20 s\n"), std::string::npos);
}

}  // namespace
}  // namespace weft::bench
