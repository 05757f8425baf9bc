#include "impi/tester/values.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace weft::impi::tester {
namespace {

using Words = std::vector<std::string>;

std::string Hex(const Words& words) {
  const auto values = Values::Parse(words, false);
  return values.ok() ? HexOf(values->bytes()) : values.error();
}

TEST(Values, AreBigEndian) {
  EXPECT_EQ(Hex({"1", "-1", "0x1234"}), "00000001ffffffff00001234");
  EXPECT_EQ(Hex({"4294967295", "-2147483648"}), "ffffffff80000000");
  EXPECT_EQ(Hex({"u8:255", "u64:1", "u64:-2"}), "ff0000000000000001fffffffffffffffe");
  EXPECT_EQ(Hex({"f32:1.5", "f64:-2"}), "3fc00000c000000000000000");
  EXPECT_EQ(Hex({"IMPI_P_PID", "text:AUTH", "hex:00fF", "zeros:3"}), "000031004155544800ff000000");
  EXPECT_EQ(Hex({"ip:192.0.2.7"}), "000000000000000000000000c0000207");
  EXPECT_EQ(Hex({"ip:2001:db8::7"}), "20010db8000000000000000000000007");
  EXPECT_EQ(Hex({"pattern:249:4"}), "f9fa0001");
  EXPECT_EQ(Hex({}), "");
}

TEST(Values, AWrongWordIsNamed) {
  for (const std::string word : {"x", "4294967296", "-2147483649", "u8:256", "u8:-1",
                                 "u64:", "u64:18446744073709551616", "hex:0", "hex:0g", "f32:", "f64:1x", "ip:1.2.3",
                                 "zeros:", "zeros:1048577", "pattern:1", "pattern:x:1", "IMPI_X", "other:1", ":"}) {
    const auto values = Values::Parse(Words{word}, true);
    ASSERT_FALSE(values.ok()) << word;
    EXPECT_TRUE(values.error().starts_with("'" + word + "' is not a value")) << values.error();
  }
}

TEST(Values, AreBounded) {
  const auto values = Values::Parse(Words{"zeros:1048576", "1"}, false);
  ASSERT_FALSE(values.ok());
  EXPECT_NE(values.error().find("with '1' the values are longer than the 1048576 bytes"), std::string::npos);
}

TEST(Values, AnyAndRestAreForExpectations) {
  for (const std::string word : {"any:4", "rest"}) EXPECT_FALSE(Values::Parse(Words{word}, false).ok());
  EXPECT_FALSE(Values::Parse(Words{"rest", "1"}, true).ok());
}

TEST(Values, AreComparedByteByByte) {
  const auto values = Values::Parse(Words{"u8:1", "any:2", "u8:4"}, true);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->size(), 4u);
  const auto difference = [&](const Bytes& came) { return values->FirstDifference(came); };
  EXPECT_EQ(difference({1, 9, 8, 4}), std::nullopt);
  EXPECT_EQ(difference({1, 9, 8, 5}), 3u);
  EXPECT_EQ(difference({2, 9, 8, 4}), 0u);
  EXPECT_EQ(difference({1, 9}), 2u);
  EXPECT_EQ(difference({1, 9, 8, 4, 0}), 4u);
}

TEST(Values, RestIsWhateverFollows) {
  const auto values = Values::Parse(Words{"u8:1", "rest"}, true);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->size(), std::nullopt);
  EXPECT_EQ(values->FirstDifference(Bytes{1}), std::nullopt);
  EXPECT_EQ(values->FirstDifference(Bytes{1, 2, 3}), std::nullopt);
  EXPECT_EQ(values->FirstDifference(Bytes{}), 0u);
}

TEST(Values, ADumpIsShort) {
  EXPECT_EQ(Dump({}), "no bytes");
  EXPECT_EQ(Dump(Bytes{1}), "1 byte: 01");
  EXPECT_EQ(Dump(Bytes{0, 0, 0, 5, 6}), "5 bytes: 00000005 06");
  EXPECT_TRUE(Dump(Bytes(100)).ends_with("00000000 ..."));
}

}  // namespace
}  // namespace weft::impi::tester
