#include <gtest/gtest.h>

#include <vector>

#include "rdmap/opcode.h"
#include "rdmap/read_request.h"

namespace weft::rdmap {
namespace {

using Bytes = std::vector<uint8_t>;

TEST(ControlByte, IsVersionAndOpcode) {
  EXPECT_EQ(ControlByteOf(Opcode::kWrite), 0x40);
  EXPECT_EQ(ControlByteOf(Opcode::kTerminate), 0x47);
  EXPECT_EQ(ControlByte::Parse(0x46).opcode, 6);
  EXPECT_EQ(ControlByte::Parse(0x46).version, 1);
  EXPECT_EQ(ControlByte::Parse(0xcf).version, 3);
  EXPECT_EQ(ControlByte::Parse(0xcf).opcode, 15);
}

TEST(ControlByte, IgnoresReservedBits) {
  EXPECT_EQ(ControlByte::Parse(0x73).opcode, 3);
  EXPECT_EQ(ControlByte::Parse(0x73).version, 1);
}

TEST(ControlByte, CarriesTheBitsOfExtendedStreams) {
  EXPECT_EQ(ControlByteOf(Opcode::kSend, true, false), 0x53);
  EXPECT_EQ(ControlByteOf(Opcode::kSend, false, true), 0x63);
  EXPECT_TRUE(ControlByte::Parse(0x63).acknowledge);
  EXPECT_FALSE(ControlByte::Parse(0x63).immediate);
}

TEST(OpcodeTable, IsFigureFour) {
  const struct {
    bool tagged;
    uint32_t queue;
    bool invalidates, solicited;
  } kFigure[] = {{true, 0, false, false}, {false, 1, false, false}, {true, 0, false, false}, {false, 0, false, false},
                 {false, 0, true, false}, {false, 0, false, true},  {false, 0, true, true},  {false, 2, false, false}};
  for (uint8_t opcode = 0; opcode < 8; ++opcode) {
    const OpcodeInfo* info = FindOpcode(opcode);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->tagged, kFigure[opcode].tagged) << info->name;
    EXPECT_EQ(info->queue, kFigure[opcode].queue) << info->name;
    EXPECT_EQ(info->invalidates, kFigure[opcode].invalidates) << info->name;
    EXPECT_EQ(info->solicited, kFigure[opcode].solicited) << info->name;
    EXPECT_EQ(info->header_length, info->tagged ? 14u : 18u) << info->name;
  }
  for (int opcode = 16; opcode < 256; ++opcode) EXPECT_EQ(FindOpcode(static_cast<uint8_t>(opcode)), nullptr) << opcode;
}

TEST(OpcodeTable, HasRfc7306AndNothingReserved) {
  constexpr uint32_t kQueues[] = {0, 0, 1, 3};  // figure 2
  for (uint8_t opcode = 8; opcode < 12; ++opcode) {
    const OpcodeInfo* info = FindOpcode(opcode);
    ASSERT_NE(info, nullptr);
    EXPECT_TRUE(info->streams == (opcode < 10 ? Streams::kExtended : Streams::kWithAtomics) && !info->tagged) << info->name;
    EXPECT_EQ(info->queue, kQueues[opcode - 8]) << info->name;
  }
  for (uint8_t opcode = 12; opcode < 15; ++opcode) EXPECT_EQ(FindOpcode(opcode), nullptr) << int{opcode};
}

// RFC 5040 figure 6, spelt out by hand.
const Bytes kReadRequest = {0x11, 0x22, 0x33, 0x44, 0,    0,    0,    0, 0, 0, 0x10, 0x00, 0, 0,
                            0x20, 0x00, 0x55, 0x66, 0x77, 0x88, 0xff, 0, 0, 0, 0,    0,    0, 1};

TEST(ReadRequestHeader, ParsesBytesOfTheWire) {
  const auto header = ReadRequestHeader::Parse(kReadRequest);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->sink_stag, ddp::STag(0x11223344));
  EXPECT_EQ(header->sink_offset, ddp::TaggedOffset(0x1000));
  EXPECT_EQ(header->length, 0x2000u);
  EXPECT_EQ(header->source_stag, ddp::STag(0x55667788));
  EXPECT_EQ(header->source_offset, ddp::TaggedOffset(0xff00000000000001));
  EXPECT_EQ(header->ToString(),
            "read 8192 bytes from STag 0x55667788 TO 0xff00000000000001 into STag 0x11223344 TO 0x1000");
}

TEST(ReadRequestHeader, SerializesWhatItParsed) {
  Bytes storage(ReadRequestHeader::kLength);
  EXPECT_EQ(ReadRequestHeader::Parse(kReadRequest)->Serialize(storage), ReadRequestHeader::kLength);
  EXPECT_EQ(storage, kReadRequest);
}

TEST(ReadRequestHeader, IsNothingAtEveryShorterLength) {
  for (size_t length = 0; length < kReadRequest.size(); ++length) {
    EXPECT_FALSE(ReadRequestHeader::Parse(ByteSpan(kReadRequest).first(length)));
  }
}

}  // namespace
}  // namespace weft::rdmap
