#include "pmi/launch/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<ConfigLine> Lines(std::string_view text) {
  const auto lines = ParseConfigFile(text, "jobs");
  EXPECT_TRUE(lines) << lines.error().message;
  return lines ? lines.value() : std::vector<ConfigLine>{};
}

std::vector<std::string> Words(std::string_view text) {
  const auto lines = Lines(text);
  EXPECT_EQ(lines.size(), 1u);
  return lines.size() == 1 ? lines[0].words : std::vector<std::string>{};
}

std::string ErrorOf(std::string_view text) {
  const auto lines = ParseConfigFile(text, "jobs");
  return lines ? "parsed" : lines.error().message;
}

TEST(ConfigFile, HasAProgramOnEachLine) {
  EXPECT_THAT(Lines("# the master\n-n 1 ./a x\n\n  \t\n-n 2 ./b  # and its workers\r\n"),
              ElementsAre(ConfigLine{2, {"-n", "1", "./a", "x"}}, ConfigLine{5, {"-n", "2", "./b"}}));
}

TEST(ConfigFile, TheLastLineNeedsNoEnd) { EXPECT_THAT(Words("a b"), ElementsAre("a", "b")); }

TEST(ConfigFile, QuotesAndBackslashesAreAsInAShell) {
  EXPECT_THAT(Words(R"(a 'b c' "d 'e'" f\ g '' h"i j"'k'\#)"), ElementsAre("a", "b c", "d 'e'", "f g", "", "hi jk#"));
  EXPECT_THAT(Words(R"('a\' "b\"\\\$\`\n" \'c)"), ElementsAre("a\\", "b\"\\$`\\n", "'c"));
}

TEST(ConfigFile, NothingIsReplaced) {
  EXPECT_THAT(Words("echo $HOME ~ * `date` a;b"), ElementsAre("echo", "$HOME", "~", "*", "`date`", "a;b"));
}

TEST(ConfigFile, ASharpWithinAWordIsNoComment) { EXPECT_THAT(Words("a#b '#c' d #e"), ElementsAre("a#b", "#c", "d")); }

TEST(ConfigFile, ABackslashAtTheEndJoinsLines) {
  EXPECT_THAT(Lines("a \\\n  b\nc"), ElementsAre(ConfigLine{1, {"a", "b"}}, ConfigLine{3, {"c"}}));
}

TEST(ConfigFile, ErrorsNameFileAndLine) {
  EXPECT_EQ(ErrorOf("a\n\nb 'c\nd'"), "jobs, line 3: a quote ' is not closed on its line");
  EXPECT_EQ(ErrorOf("a \"b\\\""), "jobs, line 1: a quote \" is not closed on its line");
  EXPECT_EQ(ErrorOf("a\nb\\"), "jobs, line 2: the file ends with a backslash");
  EXPECT_THAT(ErrorOf(std::string("a\nb\0c", 5)), HasSubstr("jobs, line 2: a zero byte"));
  EXPECT_THAT(ErrorOf(std::string("'b\0c'", 5)), HasSubstr("jobs, line 1: a zero byte"));
  EXPECT_THAT(ErrorOf(std::string("\"\\\0\"", 4)), HasSubstr("jobs, line 1: a zero byte"));
  for (const char* empty : {"", "\n \n", "# nothing"}) EXPECT_EQ(ErrorOf(empty), "jobs names no program");
}

TEST(ConfigFile, IsReadFromDisk) {
  const std::string name = ::testing::TempDir() + "/jobs";
  std::ofstream(name) << "-n 3 a\n";
  EXPECT_THAT(ReadConfigFile(name).value(), ElementsAre(ConfigLine{1, {"-n", "3", "a"}}));
  std::ofstream(name) << std::string(kLargestConfigFile + 1, 'x');
  EXPECT_EQ(ReadConfigFile(name).error().message, "cannot read " + name + ": it is larger than 16777216 bytes");
  std::remove(name.c_str());
  EXPECT_THAT(ReadConfigFile(name).error().message, HasSubstr(name + ": No such file"));
  EXPECT_THAT(ReadConfigFile(::testing::TempDir()).error().message, HasSubstr("cannot read"));
}

}  // namespace
}  // namespace weft::pmi
