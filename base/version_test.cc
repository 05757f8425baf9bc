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

class VersionInFile : public testing::Test {
 protected:
  void SetUp() override {
    const std::string all = ContentOf("/proc/self/exe");
    const std::size_t at = all.find("\x7fWEFT-" + std::string("VERSION-\x7f="));
    ASSERT_NE(at, all.npos);
    field_ = all.substr(at, 80);
  }
  std::string Write(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }

  std::string field_;

 private:
  const std::string path_ = std::string(std::getenv("TEST_TMPDIR")) + "/file";
};

TEST_F(VersionInFile, IsNothingIfTheFileEndsWithinTheField) {
  for (const std::size_t size : {1u, 15u, 16u, 30u, 79u}) EXPECT_EQ(VersionOf(Write("before" + field_.substr(0, size))), std::nullopt) << size;
}

TEST_F(VersionInFile, IsFoundWhereverItStands) {
  constexpr std::size_t kBlock = 1 << 20;  // files are read in such blocks
  for (const std::size_t before : {std::size_t{0}, std::size_t{1}, 2 * kBlock + 5}) EXPECT_EQ(VersionOf(Write(std::string(before, '\x7f') + field_)), Version());
  for (std::size_t inside = 0; inside <= field_.size(); ++inside) {
    EXPECT_EQ(VersionOf(Write(std::string(kBlock - inside, '\x7f') + field_ + "after")), Version()) << inside << " bytes before the boundary";
  }
}

}  // namespace
}  // namespace weft
