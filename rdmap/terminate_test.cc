#include "rdmap/terminate.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::rdmap {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Serialized(const TerminateMessage& message) {
  Bytes bytes(TerminateMessage::kMaxLength);
  bytes.resize(message.Serialize(bytes));
  return bytes;
}

// A base or bounds violation of an RDMA Read Request: M, D and R set.
Bytes FullMessage() {
  Bytes bytes = {0x01, 0x01, 0xe0, 0x00, 0x00, 0x2e};
  const Bytes ddp = {0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0};
  bytes.insert(bytes.end(), ddp.begin(), ddp.end());
  for (uint8_t i = 0; i < 28; ++i) bytes.push_back(i);
  return bytes;
}

TEST(TerminateMessage, ParsesHeadersOfAReadRequest) {
  const auto message = TerminateMessage::Parse(FullMessage());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->layer, TerminateLayer::kRdmap);
  EXPECT_EQ(message->error_type, 1);
  EXPECT_EQ(message->error_code, 1);
  EXPECT_EQ(message->ddp_segment_length, 46);
  EXPECT_EQ(message->ddp_header_length, 18);
  EXPECT_EQ(message->ddp_header[13], 3);
  ASSERT_TRUE(message->has_read_header);
  EXPECT_EQ(message->read_header[27], 27);
  EXPECT_EQ(message->ToString(), "RDMAP remote protection error: base or bounds violation (layer 0 type 1 code 0x01)");
}

TEST(TerminateMessage, ParsesATaggedHeader) {
  Bytes bytes = {0x11, 0x00, 0xc0, 0x00, 0x05, 0x00};
  const Bytes ddp = {0xc1, 0x40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 9};
  bytes.insert(bytes.end(), ddp.begin(), ddp.end());
  const auto message = TerminateMessage::Parse(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->layer, TerminateLayer::kDdp);
  EXPECT_EQ(message->ddp_segment_length, 0x500);
  EXPECT_EQ(message->ddp_header_length, 14);
  EXPECT_EQ(message->ddp_header[13], 9);
  EXPECT_FALSE(message->has_read_header);
}

TEST(TerminateMessage, SerializesWhatItParsed) {
  EXPECT_EQ(Serialized(*TerminateMessage::Parse(FullMessage())), FullMessage());
  const Bytes bare = {0x20, 0x02, 0x00, 0x00};
  EXPECT_EQ(Serialized(*TerminateMessage::Parse(bare)), bare);
  const Bytes length_only = {0x20, 0x02, 0x80, 0x00, 0x01, 0x02};
  EXPECT_EQ(Serialized(*TerminateMessage::Parse(length_only)), length_only);
}

TEST(TerminateMessage, IsNothingWhenShorterThanItAnnounces) {
  const Bytes full = FullMessage();
  for (size_t length = 0; length < full.size(); ++length) {
    EXPECT_FALSE(TerminateMessage::Parse(ByteSpan(full).first(length))) << length;
  }
}

TEST(TerminateMessage, SkipsALengthThatIsPresentButNotValid) {
  Bytes bytes = {0x11, 0x00, 0x40, 0x00, 0xff, 0xff};
  bytes.resize(bytes.size() + 14);
  bytes[6] = 0xc1;
  const auto message = TerminateMessage::Parse(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->ddp_segment_length, std::nullopt);
  EXPECT_EQ(message->ddp_header_length, 14);
}

TEST(TerminateMessage, ToleratesReservedBitsAndTrailingBytes) {
  EXPECT_TRUE(TerminateMessage::Parse(Bytes{0x20, 0x02, 0x1f, 0xff, 0x00, 0x11, 0x22}));
}

TEST(TerminateMessage, NamesEveryErrorOfTheThreeLayers) {
  struct Case {
    uint8_t layer, type, code;
    const char* text;
  };
  const Case cases[] = {
      {0, 0, 0, "RDMAP local catastrophic error (layer 0 type 0 code 0x00)"},
      {0, 1, 0, "RDMAP remote protection error: invalid STag (layer 0 type 1 code 0x00)"},
      {0, 1, 2, "RDMAP remote protection error: access rights violation (layer 0 type 1 code 0x02)"},
      {0, 1, 3, "RDMAP remote protection error: STag not associated with the stream (layer 0 type 1 code 0x03)"},
      {0, 1, 4, "RDMAP remote protection error: TO wrap (layer 0 type 1 code 0x04)"},
      {0, 1, 9, "RDMAP remote protection error: STag cannot be invalidated (layer 0 type 1 code 0x09)"},
      {0, 1, 0xff, "RDMAP remote protection error: unspecified error (layer 0 type 1 code 0xff)"},
      {0, 2, 5, "RDMAP remote operation error: invalid RDMAP version (layer 0 type 2 code 0x05)"},
      {0, 2, 6, "RDMAP remote operation error: unexpected opcode (layer 0 type 2 code 0x06)"},
      {0, 2, 7, "RDMAP remote operation error: catastrophic error, localized to the stream (layer 0 type 2 code 0x07)"},
      {0, 2, 8, "RDMAP remote operation error: catastrophic error, global (layer 0 type 2 code 0x08)"},
      {0, 2, 9, "RDMAP remote operation error: STag cannot be invalidated (layer 0 type 2 code 0x09)"},
      {0, 2, 0xff, "RDMAP remote operation error: unspecified error (layer 0 type 2 code 0xff)"},
      {1, 0, 0, "DDP local catastrophic error (layer 1 type 0 code 0x00)"},
      {1, 1, 0, "DDP tagged buffer error: invalid STag (layer 1 type 1 code 0x00)"},
      {1, 1, 4, "DDP tagged buffer error: invalid DDP version (layer 1 type 1 code 0x04)"},
      {1, 2, 1, "DDP untagged buffer error: invalid queue number (layer 1 type 2 code 0x01)"},
      {1, 2, 2, "DDP untagged buffer error: invalid MSN, no buffer available (layer 1 type 2 code 0x02)"},
      {1, 2, 3, "DDP untagged buffer error: invalid MSN, out of range (layer 1 type 2 code 0x03)"},
      {1, 2, 4, "DDP untagged buffer error: invalid MO (layer 1 type 2 code 0x04)"},
      {1, 2, 5, "DDP untagged buffer error: message too long for the available buffer (layer 1 type 2 code 0x05)"},
      {2, 0, 1, "LLP MPA error: TCP connection closed, terminated or lost (layer 2 type 0 code 0x01)"},
      {2, 0, 2, "LLP MPA error: CRC does not match (layer 2 type 0 code 0x02)"},
      {2, 0, 3, "LLP MPA error: marker and ULPDU length do not agree (layer 2 type 0 code 0x03)"},
      {2, 0, 4, "LLP MPA error: invalid MPA request or reply (layer 2 type 0 code 0x04)"},
      {2, 0, 5, "LLP MPA error: local catastrophic error (layer 2 type 0 code 0x05)"},
      {2, 0, 6, "LLP MPA error: insufficient IRD resources (layer 2 type 0 code 0x06)"},
      {2, 0, 7, "LLP MPA error: no matching RTR option (layer 2 type 0 code 0x07)"},
      {0, 7, 3, "RDMAP error of unknown type (layer 0 type 7 code 0x03)"},
      {2, 1, 3, "LLP error of unknown type (layer 2 type 1 code 0x03)"},
      {9, 1, 3, "unknown layer error of unknown type (layer 9 type 1 code 0x03)"},
  };
  for (const Case& c : cases) {
    const Bytes bytes = {static_cast<uint8_t>(c.layer << 4 | c.type), c.code, 0, 0};
    EXPECT_EQ(TerminateMessage::Parse(bytes)->ToString(), c.text);
  }
}

}  // namespace
}  // namespace weft::rdmap
