// DDP as RFC 5041 wants it, clause by clause, seen through an RDMAP stream: what it accepts, and the Terminate that it
// sends for what it does not.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "ddp/error.h"
#include "ddp/header.h"
#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"
#include "rdmap/testing/wire.h"

namespace weft::rdmap {
namespace {

using testing::Bytes;
using testing::Deliver;
using testing::FakeHost;
using testing::Pattern;
using testing::Rights;
using testing::Tagged;
using testing::Untagged;
using testing::Wire;

constexpr ddp::STag kRegion{0x100};
constexpr ddp::STag kForeignRegion{0x200};  // of another protection domain
constexpr ddp::STag kReadOnlyRegion{0x300};
constexpr uint64_t kBase = 0x10000;
constexpr size_t kSize = 4096;

class Rfc5041 : public ::testing::Test {
 protected:
  Rfc5041() : stream_({.ird = 2, .ord = 2}, host_) {
    host_.AddRegion(kRegion, kBase, kSize);
    host_.AddRegion(kForeignRegion, kBase, kSize, Rights{.associated = false});
    host_.AddRegion(kReadOnlyRegion, kBase, kSize, Rights{.remote_write = false});
  }

  bool Receive(const Bytes& segment) { return Deliver(stream_, segment); }
  Bytes Memory(ddp::STag stag, size_t at, size_t length) {
    const Bytes& bytes = host_.FindRegion(stag)->bytes;
    return Bytes(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at + length));
  }

  // The segment ends the stream with this DDP error, and the Terminate quotes it.
  void ExpectRefused(const Bytes& segment, ddp::Error error) {
    EXPECT_FALSE(Receive(segment));
    ASSERT_EQ(stream_.state(), StreamState::kTerminating);
    Wire wire;
    ASSERT_TRUE(stream_.Transmit(wire));
    const Bytes sent = wire.Take();
    const auto header = ddp::UntaggedHeader::Parse(sent);
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->queue, kTerminateQueue);
    EXPECT_EQ(header->msn, ddp::Msn(1));
    EXPECT_TRUE(header->last);
    const auto message = TerminateMessage::Parse(ByteSpan(sent).subspan(ddp::UntaggedHeader::kLength));
    ASSERT_TRUE(message);
    EXPECT_EQ(message->layer, TerminateLayer::kDdp) << message->ToString();
    EXPECT_EQ(message->error_type, ddp::ErrorType(error)) << message->ToString();
    EXPECT_EQ(message->error_code, ddp::ErrorCode(error)) << message->ToString();
    EXPECT_EQ(message->ddp_segment_length, segment.size());
    const bool tagged = (segment[0] & 0x80) != 0;
    ASSERT_EQ(message->ddp_header_length, tagged ? 14 : 18);
    EXPECT_TRUE(std::equal(segment.begin(), segment.begin() + message->ddp_header_length, message->ddp_header.begin()));
    EXPECT_FALSE(message->has_read_header);
  }

  FakeHost host_;
  Stream stream_;
};

TEST_F(Rfc5041, Section_4_1_DoesNotCheckReservedBits) {
  Bytes segment = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(10));
  segment[0] |= 0x3c;
  EXPECT_TRUE(Receive(segment));
}

TEST_F(Rfc5041, Section_4_1_RefusesOtherVersionsOfTaggedSegments) {
  Bytes segment = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(10));
  segment[0] = static_cast<uint8_t>((segment[0] & ~3) | 2);
  ExpectRefused(segment, ddp::Error::kTaggedInvalidVersion);
}

TEST_F(Rfc5041, Section_4_1_RefusesOtherVersionsOfUntaggedSegments) {
  host_.PostReceive({100});
  Bytes segment = Untagged(Opcode::kSend, 1, 0, Pattern(10));
  segment[0] &= ~3;
  ExpectRefused(segment, ddp::Error::kUntaggedInvalidVersion);
  EXPECT_EQ(host_.receives_taken, 0u);
}

TEST_F(Rfc5041, Section_4_2_PlacesPayloadAtTheTaggedOffset) {
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, kRegion.value, kBase + 100, Pattern(50))));
  EXPECT_EQ(Memory(kRegion, 100, 50), Pattern(50));
  EXPECT_EQ(Memory(kRegion, 99, 1), Bytes(1));
  EXPECT_EQ(Memory(kRegion, 150, 1), Bytes(1));
}

TEST_F(Rfc5041, Section_4_3_NumbersMessagesOfAQueueFromOne) {
  host_.PostReceive({8});
  ExpectRefused(Untagged(Opcode::kSend, 0, 0, Pattern(8)), ddp::Error::kMsnRange);
}

TEST_F(Rfc5041, Section_4_3_IncreasesTheMsnByOneWithEachMessage) {
  for (uint32_t msn = 1; msn <= 5; ++msn) {
    host_.PostReceive({8});
    EXPECT_TRUE(Receive(Untagged(Opcode::kSend, msn, 0, Pattern(8, msn))));
  }
  host_.PostReceive({8});
  ExpectRefused(Untagged(Opcode::kSend, 5, 0, Pattern(8)), ddp::Error::kMsnRange);
}

TEST_F(Rfc5041, Section_4_3_CountsEachQueueByItself) {
  host_.PostReceive({8});
  host_.PostReceive({8});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(8))));
  EXPECT_TRUE(Receive(testing::ReadRequest(1, {})));
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 2, 0, Pattern(8))));
  EXPECT_TRUE(Receive(testing::ReadRequest(2, {})));
}

TEST_F(Rfc5041, Section_5_2_ReassemblesUntaggedMessagesByOffset) {
  host_.PostReceive({7, 0, 1, 100});
  const Bytes message = Pattern(60);
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Bytes(message.begin(), message.begin() + 10), false)));
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 10, Bytes(message.begin() + 10, message.begin() + 59), false)));
  EXPECT_TRUE(host_.arrivals.empty());
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 59, Bytes(message.begin() + 59, message.end()))));
  ASSERT_EQ(host_.arrivals.size(), 1u);
  EXPECT_EQ(host_.arrivals[0].bytes, message);
}

TEST_F(Rfc5041, Section_5_2_DoesNotCheckStagAndOffsetOfAZeroLengthTaggedMessage) {
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, 0xdeadbeef, UINT64_MAX, {})));
  EXPECT_EQ(host_.resolved, 0u);
}

TEST_F(Rfc5041, Section_5_2_AZeroLengthUntaggedMessageTakesOneBuffer) {
  host_.PostReceive({});
  host_.PostReceive({8});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, {})));
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 2, 0, {})));
  ASSERT_EQ(host_.arrivals.size(), 2u);
  EXPECT_EQ(host_.arrivals[1].message.length, 0u);
}

TEST_F(Rfc5041, Section_5_4_DeliversWithTheLastSegmentOnlyAndWithTheLength) {
  host_.PostReceive({1000});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(100), false)));
  EXPECT_TRUE(host_.arrivals.empty());
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 100, {}, true)));
  ASSERT_EQ(host_.arrivals.size(), 1u);
  EXPECT_EQ(host_.arrivals[0].message.length, 100u);
}

TEST_F(Rfc5041, Section_7_1_RefusesQueuesThatDoNotExist) {
  host_.PostReceive({100});
  Bytes segment = Untagged(Opcode::kSend, 1, 0, Pattern(8));
  segment[9] = 3;  // QN
  ExpectRefused(segment, ddp::Error::kInvalidQueue);
}

TEST_F(Rfc5041, Section_7_1_RefusesAMessageWithoutABuffer) {
  ExpectRefused(Untagged(Opcode::kSend, 1, 0, Pattern(8)), ddp::Error::kNoBuffer);
}

TEST_F(Rfc5041, Section_7_1_RefusesAMessageAheadOfItsTurn) {
  host_.PostReceive({8});
  host_.PostReceive({8});
  ExpectRefused(Untagged(Opcode::kSend, 2, 0, Pattern(8)), ddp::Error::kMsnRange);
}

TEST_F(Rfc5041, Section_7_1_RefusesANewMessageBeforeTheLastSegmentOfTheOld) {
  host_.PostReceive({80});
  host_.PostReceive({80});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(8), false)));
  ExpectRefused(Untagged(Opcode::kSend, 2, 0, Pattern(8)), ddp::Error::kMsnRange);
}

TEST_F(Rfc5041, Section_7_1_RefusesAMessageThatDoesNotStartAtOffsetZero) {
  host_.PostReceive({100});
  ExpectRefused(Untagged(Opcode::kSend, 1, 1, Pattern(8)), ddp::Error::kInvalidMessageOffset);
}

TEST_F(Rfc5041, Section_7_1_RefusesAGapInAMessage) {
  host_.PostReceive({100});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(8), false)));
  ExpectRefused(Untagged(Opcode::kSend, 1, 9, Pattern(8)), ddp::Error::kInvalidMessageOffset);
}

TEST_F(Rfc5041, Section_7_1_RefusesAnOverlapInAMessage) {
  host_.PostReceive({100});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(8), false)));
  ExpectRefused(Untagged(Opcode::kSend, 1, 7, Pattern(8)), ddp::Error::kInvalidMessageOffset);
}

TEST_F(Rfc5041, Section_7_1_RefusesAMessageOneByteTooLong) {
  host_.PostReceive({4, 4});
  ExpectRefused(Untagged(Opcode::kSend, 1, 0, Pattern(9)), ddp::Error::kMessageTooLong);
}

TEST_F(Rfc5041, Section_7_1_RefusesALaterSegmentOneByteTooLong) {
  host_.PostReceive({4, 4});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(8), false)));
  ExpectRefused(Untagged(Opcode::kSend, 1, 8, Pattern(1)), ddp::Error::kMessageTooLong);
}

TEST_F(Rfc5041, Section_7_1_RefusesPayloadForAnEmptyBuffer) {
  host_.PostReceive({});
  ExpectRefused(Untagged(Opcode::kSend, 1, 0, Pattern(1)), ddp::Error::kMessageTooLong);
}

TEST_F(Rfc5041, Section_7_1_RefusesAStagThatIsNotThere) {
  ExpectRefused(Tagged(Opcode::kWrite, 0xdeadbeef, kBase, Pattern(8)), ddp::Error::kInvalidStag);
}

TEST_F(Rfc5041, Section_7_1_RefusesAStagOfAnotherStream) {
  ExpectRefused(Tagged(Opcode::kWrite, kForeignRegion.value, kBase, Pattern(8)), ddp::Error::kStagNotAssociated);
}

TEST_F(Rfc5041, Section_7_1_RefusesAStagThatDoesNotAllowPlacement) {
  ExpectRefused(Tagged(Opcode::kWrite, kReadOnlyRegion.value, kBase, Pattern(8)), ddp::Error::kInvalidStag);
  EXPECT_EQ(Memory(kReadOnlyRegion, 0, 8), Bytes(8));
}

TEST_F(Rfc5041, Section_7_1_RefusesAnOffsetBelowTheBase) {
  ExpectRefused(Tagged(Opcode::kWrite, kRegion.value, kBase - 1, Pattern(8)), ddp::Error::kBaseOrBounds);
}

TEST_F(Rfc5041, Section_7_1_RefusesAnEndOneByteBeyondTheBounds) {
  ExpectRefused(Tagged(Opcode::kWrite, kRegion.value, kBase + kSize - 7, Pattern(8)), ddp::Error::kBaseOrBounds);
}

TEST_F(Rfc5041, Section_7_1_AcceptsAnEndAtTheBounds) {
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, kRegion.value, kBase + kSize - 8, Pattern(8))));
}

TEST_F(Rfc5041, Section_7_1_RefusesAnOffsetThatWraps) {
  ExpectRefused(Tagged(Opcode::kWrite, kRegion.value, UINT64_MAX - 3, Pattern(8)), ddp::Error::kOffsetWrap);
  EXPECT_EQ(host_.resolved, 0u);
}

TEST_F(Rfc5041, Section_7_1_ChecksEverySegmentOfATaggedMessage) {
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(8), false)));
  ExpectRefused(Tagged(Opcode::kWrite, kRegion.value, kBase + kSize, Pattern(8)), ddp::Error::kBaseOrBounds);
}

TEST_F(Rfc5041, Section_7_1_DropsSegmentsAfterAnError) {
  host_.PostReceive({100});
  EXPECT_FALSE(Receive(Tagged(Opcode::kWrite, 1, kBase, Pattern(8))));
  EXPECT_FALSE(Receive(Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(8))));
  EXPECT_FALSE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(8))));
  EXPECT_EQ(Memory(kRegion, 0, 8), Bytes(8));
  EXPECT_EQ(host_.receives_taken, 0u);
}

}  // namespace
}  // namespace weft::rdmap
