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
  EXPECT_THAT(ProblemOfFilePattern("a%q"), StartsWith("'%q' has no meaning; %r is the rank"));
  EXPECT_THAT(ProblemOfFilePattern("%r%"), StartsWith("'%' has no meaning"));
  EXPECT_THAT(ProblemOfFilePattern("%%%R"), StartsWith("'%R' has no meaning"));
}

}  // namespace
}  // namespace weft::pmi
