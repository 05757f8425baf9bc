#include "impi/tester/report.h"

#include <gtest/gtest.h>

namespace weft::impi::tester {
namespace {

Script TheScript() {
  Script script;
  script.file = "a.script";
  script.clause = "2.3.4";
  script.about = "The server tells how many there are.";
  return script;
}

TEST(Report, AScriptThatPassedIsALine) {
  EXPECT_EQ(TextOf(TheScript(),
                   {.passed = true,
                    .failure = {},
                    .trace = {"to a: AUTH"},
                    .output = "words",
                    .took = std::chrono::milliseconds(1250)},
                   false),
            "2.3.4   passed  The server tells how many there are. (a.script, 1.25 s)\n");
}

TEST(Report, AScriptThatFailedShowsStepReasonTraceAndOutput) {
  const Verdict verdict{.passed = false,
                        .failure = {7, "hear a IMPI 2", "this came: DONE"},
                        .trace = {"to a: AUTH"},
                        .output = "one\ntwo",
                        .took = {}};
  EXPECT_EQ(TextOf(TheScript(), verdict, false),
            "2.3.4   FAILED  The server tells how many there are. (a.script, 0.00 s)\n"
            "        a.script:7: hear a IMPI 2\n"
            "        this came: DONE\n"
            "        what was sent and came:\n"
            "          to a: AUTH\n"
            "        what the implementation under test printed:\n"
            "          one\n"
            "          two\n");
}

TEST(Report, ClausesAscendAsInTheSpecification) {
  EXPECT_TRUE(ClauseBefore("2.3.9", "2.3.10"));
  EXPECT_TRUE(ClauseBefore("2.4", "3.1"));
  EXPECT_TRUE(ClauseBefore("2.3", "2.3.1"));
  EXPECT_FALSE(ClauseBefore("4.10", "4.9"));
  EXPECT_EQ(Summary({{"4.10", true}, {"4.9", false}, {"4.10", true}}),
            "clause 4.9: 0 of 1 passed\nclause 4.10: 2 of 2 passed\nall: 2 of 3 passed\n");
}

}  // namespace
}  // namespace weft::impi::tester
