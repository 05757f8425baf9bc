#include "ddp/header.h"

#include <gtest/gtest.h>

#include <vector>

#include "ddp/error.h"

namespace weft::ddp {
namespace {

using Bytes = std::vector<uint8_t>;

// RFC 5041 figures 4 and 5, spelt out by hand.
const Bytes kTaggedBytes = {0xc1, 0x40, 0x12, 0x34, 0x56, 0x78, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
const Bytes kUntaggedBytes = {0x01, 0x44, 0xca, 0xfe, 0xba, 0xbe, 0x00, 0x00, 0x00,
                              0x02, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x05, 0xca};

TEST(TaggedHeader, ParsesBytesOfTheWire) {
  const auto header = TaggedHeader::Parse(kTaggedBytes);
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header->last);
  EXPECT_EQ(header->rsvd_ulp, 0x40);
  EXPECT_EQ(header->stag, STag(0x12345678));
  EXPECT_EQ(header->offset, TaggedOffset(0x0102030405060708));
  EXPECT_EQ(header->ToString(), "tagged last ulp 0x40 STag 0x12345678 TO 0x102030405060708");
}

TEST(UntaggedHeader, ParsesBytesOfTheWire) {
  const auto header = UntaggedHeader::Parse(kUntaggedBytes);
  ASSERT_TRUE(header.ok());
  EXPECT_FALSE(header->last);
  EXPECT_EQ(header->rsvd_ulp, 0x44);
  EXPECT_EQ(header->rsvd_ulp_word, 0xcafebabe);
  EXPECT_EQ(header->queue, 2u);
  EXPECT_EQ(header->msn, Msn(0xffffffff));
  EXPECT_EQ(header->message_offset, 1482u);
  EXPECT_EQ(header->ToString(), "untagged ulp 0x44 0xcafebabe QN 2 MSN 4294967295 MO 1482");
}

TEST(TaggedHeader, SerializesWhatItParsed) {
  Bytes storage(TaggedHeader::kLength);
  EXPECT_EQ(TaggedHeader::Parse(kTaggedBytes)->Serialize(storage), kTaggedBytes.size());
  EXPECT_EQ(storage, kTaggedBytes);
}

TEST(UntaggedHeader, SerializesWhatItParsed) {
  Bytes storage(UntaggedHeader::kLength);
  EXPECT_EQ(UntaggedHeader::Parse(kUntaggedBytes)->Serialize(storage), kUntaggedBytes.size());
  EXPECT_EQ(storage, kUntaggedBytes);
}

TEST(TaggedHeader, IsTruncatedAtEveryShorterLength) {
  for (size_t length = 0; length < kTaggedBytes.size(); ++length) {
    const Bytes shorter(kTaggedBytes.begin(), kTaggedBytes.begin() + length);
    EXPECT_EQ(TaggedHeader::Parse(shorter).error(), HeaderError::kTruncated) << length;
  }
}

TEST(UntaggedHeader, IsTruncatedAtEveryShorterLength) {
  for (size_t length = 0; length < kUntaggedBytes.size(); ++length) {
    const Bytes shorter(kUntaggedBytes.begin(), kUntaggedBytes.begin() + length);
    EXPECT_EQ(UntaggedHeader::Parse(shorter).error(), HeaderError::kTruncated) << length;
  }
}

TEST(TaggedHeader, LeavesThePayloadAlone) {
  Bytes longer = kTaggedBytes;
  longer.push_back(0xff);
  EXPECT_TRUE(TaggedHeader::Parse(longer).ok());
}

TEST(ControlField, RefusesEveryOtherVersion) {
  for (uint8_t version : {0, 2, 3}) {
    Bytes tagged = kTaggedBytes;
    tagged[0] = static_cast<uint8_t>(0xc0 | version);
    EXPECT_EQ(TaggedHeader::Parse(tagged).error(), HeaderError::kBadVersion);
    Bytes untagged = kUntaggedBytes;
    untagged[0] = version;
    EXPECT_EQ(UntaggedHeader::Parse(untagged).error(), HeaderError::kBadVersion);
  }
}

TEST(ControlField, IgnoresReservedBitsOnReceiveAndClearsThemOnTransmit) {
  Bytes bytes = kTaggedBytes;
  bytes[0] |= 0x3c;
  ASSERT_TRUE(TaggedHeader::Parse(bytes).ok());
  TaggedHeader::Parse(bytes)->Serialize(bytes);
  EXPECT_EQ(bytes[0], 0xc1);
}

TEST(ControlField, TellsTheModelsApart) {
  EXPECT_EQ(UntaggedHeader::Parse(Bytes(18, 0xc1)).error(), HeaderError::kOtherModel);
  EXPECT_EQ(TaggedHeader::Parse(Bytes(18, 0x41)).error(), HeaderError::kOtherModel);
}

TEST(Error, HasTheNumbersOfTheRfc) {
  EXPECT_EQ(ErrorType(Error::kOffsetWrap), 1);
  EXPECT_EQ(ErrorCode(Error::kOffsetWrap), 3);
  EXPECT_EQ(ErrorType(Error::kUntaggedInvalidVersion), 2);
  EXPECT_EQ(ErrorCode(Error::kUntaggedInvalidVersion), 6);
  EXPECT_STREQ(ErrorTypeName(2), "untagged buffer error");
  EXPECT_STREQ(ErrorCodeName(2, 5), "message too long for the available buffer");
  EXPECT_EQ(ErrorTypeName(3), nullptr);
  EXPECT_EQ(ErrorCodeName(2, 0), nullptr);
  EXPECT_EQ(ErrorCodeName(1, 5), nullptr);
}

}  // namespace
}  // namespace weft::ddp
