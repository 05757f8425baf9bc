#include "base/version.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace weft {
namespace {

std::string ContentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Version, IsWhatTheFileVersionSaysAndThatItIsNotInstalled) {
  std::string text = ContentOf("VERSION");
  ASSERT_FALSE(text.empty());
  text.pop_back();  // the newline
  EXPECT_EQ(Version(), text + "+dev");
}

TEST(Version, IsReadFromAFile) { EXPECT_EQ(VersionOf("/proc/self/exe"), std::string(Version())); }

TEST(Version, OfAFileThatIsNotWeftsIsNothing) {
  EXPECT_EQ(VersionOf("VERSION"), std::nullopt);
  EXPECT_EQ(VersionOf("/nonexistent"), std::nullopt);
}

TEST(Version, OfAFileThatEndsWithinTheFieldIsNothing) {
  const std::string cut = std::string(std::getenv("TEST_TMPDIR")) + "/cut";
  const std::string all = ContentOf("/proc/self/exe");
  const std::size_t field = all.find("\x7fWEFT-" + std::string("VERSION-\x7f="));
  ASSERT_NE(field, all.npos);
  std::ofstream(cut, std::ios::binary) << all.substr(0, field + 30);
  EXPECT_EQ(VersionOf(cut), std::nullopt);
}

}  // namespace
}  // namespace weft
