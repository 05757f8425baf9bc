#include "cm/rsocket/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weft::rsocket {
namespace {

using Bytes = std::array<uint8_t, ConnectData::kSize>;

ConnectData Example() {
  ConnectData data;
  data.credits = 0x0180;
  data.map_entries = 3;
  data.target_list = {0x1122334455667788, 0x99aabbcc, 2};
  data.buffer = {0x0102030405060708, 0x090a0b0c, 65536};
  return data;
}

TEST(ConnectData, IsBigEndianOnTheWire) {
  const Bytes expected = {1,    2,    0x01, 0x80, 0,    0,    0,    3,     //
                          0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,  //
                          0x99, 0xaa, 0xbb, 0xcc, 0,    0,    0,    2,     //
                          1,    2,    3,    4,    5,    6,    7,    8,     //
                          9,    10,   11,   12,   0,    1,    0,    0};
  Bytes bytes;
  Example().Serialize(bytes);
  EXPECT_EQ(bytes, expected);
}

TEST(ConnectData, ComesBackAsItWas) {
  Bytes bytes;
  Example().Serialize(bytes);
  const auto parsed = ConnectData::Parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->big_endian);
  EXPECT_EQ(parsed->credits, 0x0180);
  EXPECT_EQ(parsed->map_entries, 3);
  EXPECT_EQ(parsed->target_list.address, 0x1122334455667788u);
  EXPECT_EQ(parsed->target_list.key, 0x99aabbccu);
  EXPECT_EQ(parsed->buffer.length, 65536u);
}

TEST(ConnectData, MayBeFollowedByPadding) {
  std::vector<uint8_t> bytes(196);
  Example().Serialize(std::span<uint8_t, ConnectData::kSize>(bytes.data(), ConnectData::kSize));
  EXPECT_TRUE(ConnectData::Parse(bytes));
}

TEST(ConnectData, IsRefusedWhenShortOrOfAnotherVersion) {
  Bytes bytes;
  Example().Serialize(bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(ConnectData::Parse(std::span(bytes.data(), length))) << length;
  }
  bytes[0] = 2;
  EXPECT_FALSE(ConnectData::Parse(bytes));
}

TEST(ConnectData, HasNoMapWithoutTheFlag) {
  Bytes bytes;
  Example().Serialize(bytes);
  bytes[1] = 0;
  EXPECT_EQ(ConnectData::Parse(bytes)->map_entries, 0);
}

TEST(ConnectData, EverySizeOfAMapThatCanBeSaidIsUnderstood) {
  for (uint32_t entries = 0; entries < 70000; ++entries) {
    const uint16_t scaled = ScaledMapEntries(entries);
    ASSERT_LE(scaled, entries);
    ConnectData data = Example();
    data.map_entries = scaled;
    Bytes bytes;
    data.Serialize(bytes);
    ASSERT_EQ(ConnectData::Parse(bytes)->map_entries, scaled) << entries;
  }
  EXPECT_EQ(ScaledMapEntries(128), 128);
  EXPECT_EQ(ScaledMapEntries(255), 128);
  EXPECT_EQ(ScaledMapEntries(600), 512);
}

TEST(Message, HasItsTypeInTheUpperThreeBits) {
  EXPECT_EQ((Message{MessageType::kControl, 2}.Serialize()), 0xe0000002u);
  EXPECT_EQ((Message{MessageType::kCredits, 0xffff}.Serialize()), 0x8000ffffu);
  const Message parsed = Message::Parse(0x00010000);
  EXPECT_EQ(parsed.type, MessageType::kData);
  EXPECT_EQ(parsed.value, 65536u);
}

TEST(Swapped, TurnsEveryField) {
  const IoMapEntry entry{0x0102030405060708, {0x1112131415161718, 0x21222324, 0x31323334}};
  const IoMapEntry swapped = Swapped(entry, true);
  EXPECT_EQ(swapped.offset, 0x0807060504030201u);
  EXPECT_EQ(swapped.target.address, 0x1817161514131211u);
  EXPECT_EQ(swapped.target.key, 0x24232221u);
  EXPECT_EQ(swapped.target.length, 0x34333231u);
  EXPECT_EQ(Swapped(entry, false).offset, entry.offset);
}

}  // namespace
}  // namespace weft::rsocket
