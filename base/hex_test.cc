#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>

namespace weft {
namespace {

TEST(HexTest, GoesThereAndBack) {
  const std::array<uint8_t, 4> bytes{0x00, 0x9a, 0xbc, 0xff};
  EXPECT_EQ(HexOf(bytes), "009abcff");
  std::array<uint8_t, 4> parsed{};
  EXPECT_TRUE(ParseHex("009aBCfF", parsed));
  EXPECT_EQ(parsed, bytes);
}

TEST(HexTest, TakesNothingElse) {
  std::array<uint8_t, 2> bytes{};
  for (const char* text : {"", "12", "123", "12345", "123456", "12g4", "0x12", " 234", "-123"}) EXPECT_FALSE(ParseHex(text, bytes)) << text;
}

}  // namespace
}  // namespace weft
