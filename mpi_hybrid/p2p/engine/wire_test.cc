#include "mpi_hybrid/p2p/engine/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace weft::mpi {
namespace {

using HeaderBytes = std::array<uint8_t, FrameHeader::kLength>;

HeaderBytes Serialized(const FrameHeader& header) {
  HeaderBytes bytes;
  header.SerializeTo(bytes);
  return bytes;
}

TEST(FrameHeaderTest, HasTheDocumentedBytes) {
  const HeaderBytes bytes = Serialized({.kind = FrameKind::kRequest,
                                        .flags = kFlagSynchronous,
                                        .credit = 0x01020304,
                                        .context = 0x11121314,
                                        .tag = 0x21222324,
                                        .source = 0x31323334,
                                        .send_id = 0x41424344,
                                        .receive_id = 0x51525354,
                                        .length = 0x6162636465666768});
  const uint8_t expected[FrameHeader::kLength] = {2,    1,    0,    0,    4,    3,    2,    1,    0x14, 0x13, 0x12, 0x11, 0x24, 0x23,
                                                  0x22, 0x21, 0x34, 0x33, 0x32, 0x31, 0x44, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x51,
                                                  0,    0,    0,    0,    0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
}

TEST(FrameHeaderTest, RoundTripsEveryKind) {
  for (int kind = 1; kind <= 12; ++kind) {
    const FrameHeader header = {.kind = static_cast<FrameKind>(kind), .credit = 7, .context = 4, .tag = 5, .source = 6, .length = 8};
    const auto parsed = FrameHeader::Parse(Serialized(header));
    ASSERT_TRUE(parsed.has_value()) << kind;
    EXPECT_EQ(Serialized(*parsed), Serialized(header));
  }
}

TEST(FrameHeaderTest, RefusesWhatIsNotAFrame) {
  const HeaderBytes good = Serialized({.kind = FrameKind::kEager, .length = 3});
  ASSERT_TRUE(FrameHeader::Parse(good).has_value());
  struct Damage {
    size_t at;
    uint8_t value;
  };
  for (const Damage damage : {Damage{0, 0}, {0, 13}, {0, 255}, {1, 16}, {1, 0x80}, {2, 1}, {3, 1}, {15, 0x80}, {19, 0x80}, {28, 1},
                              {31, 0x80}, {39, 0x80}, {39, 0x41}}) {
    HeaderBytes bad = good;
    bad[damage.at] = damage.value;
    EXPECT_FALSE(FrameHeader::Parse(bad).has_value()) << damage.at << " " << int{damage.value};
    EXPECT_FALSE(EagerHeader().Parse(bad)) << damage.at << " " << int{damage.value};
  }
}

// One byte of a header is anything.
TEST(EagerHeaderTest, TakesWhatIsAnEagerMessageWithoutFlagsAndNothingElse) {
  const HeaderBytes good = Serialized({.kind = FrameKind::kEager, .credit = 9, .context = 8, .tag = 7, .source = 6, .length = 5});
  int taken = 0;
  for (size_t at = 0; at < FrameHeader::kLength; ++at) {
    for (int value = 0; value < 256; ++value) {
      HeaderBytes bytes = good;
      bytes[at] = static_cast<uint8_t>(value);
      const auto parsed = FrameHeader::Parse(bytes);
      EagerHeader header;
      ASSERT_EQ(header.Parse(bytes), parsed && parsed->kind == FrameKind::kEager && parsed->flags == 0) << at << " " << value;
      if (!header.Parse(bytes)) continue;
      ++taken;
      EXPECT_EQ(header.credit, parsed->credit);
      EXPECT_EQ(header.context, parsed->context);
      EXPECT_EQ(header.tag, parsed->tag);
      EXPECT_EQ(header.source, parsed->source);
      EXPECT_EQ(header.length, parsed->length);
    }
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace weft::mpi
