#include "pmi/launch/file_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using ::testing::StartsWith;

TEST(FilePattern, NamesRankJobProxyAndHost) {
  const FileUser user{12, 3, 1, "node7"};
  EXPECT_EQ(FileNameOf("out/%h/%g-%r.%p.txt", user), "out/node7/3-12.1.txt");
  EXPECT_EQ(FileNameOf("%r%r%%r%%%%", user), "1212%r%%");
  EXPECT_EQ(FileNameOf("all", user), "all");
}

TEST(FilePattern, WhatAHostIsCalledIsNoPattern) {
  EXPECT_EQ(FileNameOf("%h.%r", {4, 0, 0, "fe80::1%r"}), "fe80::1%r.4");
}

TEST(FilePattern, OnlyTheseLettersHaveAMeaning) {
  for (const char* right : {"a", "%r", "a%%", "%g%p%h"}) EXPECT_EQ(ProblemOfFilePattern(right), "") << right;
  EXPECT_EQ(ProblemOfFilePattern(""), "the name of the file is empty");
  EXPECT_THAT(ProblemOfFilePattern("a%q"), StartsWith("'%q' is unknown; %r is the rank"));
  EXPECT_THAT(ProblemOfFilePattern("%r%"), StartsWith("'%' is unknown"));
  EXPECT_THAT(ProblemOfFilePattern("%%%R"), StartsWith("'%R' is unknown"));
}

TEST(FilePattern, LinesMayBeginWithTheTime) {
  EXPECT_EQ(ProblemOfLinePattern("[%r %t] "), "");
  EXPECT_EQ(ProblemOfLinePattern(""), "");
  EXPECT_EQ(LabelOf("<%r:%g%%> ", {.rank = 3, .job = 1}), "<3:1%> ");
  EXPECT_NE(LabelOf("%t", {}), "%t");
  EXPECT_NE(ProblemOfFilePattern("%t"), "");
  EXPECT_NE(ProblemOfLinePattern("%x").find("'%x' is unknown"), std::string::npos);
}

}  // namespace
}  // namespace weft::pmi
