// RFC 5040 section 4 and 5: what each message looks like on the wire, sent and received.
#include "tests/conformance/rdmap/harness.h"

namespace weft::rdmap {
namespace {

using testing::Bytes;
using testing::Pattern;
using testing::Tagged;
using testing::Untagged;

class Rfc5040 : public RdmapTest {
 protected:
  Request SendOf(Opcode opcode, uint32_t invalidate = 0) {
    Request request;
    request.opcode = opcode;
    request.invalidate_stag = ddp::STag(invalidate);
    return request;
  }
  Request WriteTo(uint32_t stag, uint64_t offset) {
    Request request;
    request.opcode = Opcode::kWrite;
    request.remote_stag = ddp::STag(stag);
    request.remote_offset = ddp::TaggedOffset(offset);
    return request;
  }
};

TEST_F(Rfc5040, Section_4_1_AppendixA_1_SendsAWrite) {
  host_->Post(WriteTo(0x01020304, 0x1122334455667788), {0xaa, 0xbb});
  EXPECT_EQ(Next(), (Bytes{0xc1, 0x40, 1, 2, 3, 4, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb}));
}

TEST_F(Rfc5040, Section_4_4_AppendixA_2_SendsAReadRequest) {
  host_->PostRead(ddp::STag(0x05060708), 0x1000, 0x20, kSink, kBase);
  EXPECT_EQ(Next(), (Bytes{0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0,    0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0x10, 0,
                           0,    0,    0, 0, 1, 0, 0, 0, 0, 0, 0x20, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x10, 0}));
}

TEST_F(Rfc5040, Section_4_5_AppendixA_3_SendsAReadResponse) {
  ASSERT_TRUE(Receive(testing::ReadRequest(
      1, {ddp::STag(0x0a0b0c0d), ddp::TaggedOffset(0x77), 3, kRegion, ddp::TaggedOffset(kBase + 1)})));
  const Bytes source = Memory(kRegion, 1, 3);
  EXPECT_EQ(Next(),
            (Bytes{0xc1, 0x42, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0, 0, 0, 0, 0x77, source[0], source[1], source[2]}));
}

TEST_F(Rfc5040, Section_4_6_AppendixA_4_SendsASend) {
  host_->Post(SendOf(Opcode::kSend), {0xaa});
  host_->Post(SendOf(Opcode::kSendSolicited), {0xbb});
  EXPECT_EQ(Next(), (Bytes{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xaa}));
  EXPECT_EQ(Next(), (Bytes{0x41, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xbb}));
}

TEST_F(Rfc5040, Section_4_7_AppendixA_5_SendsASendWithInvalidate) {
  host_->Post(SendOf(Opcode::kSendInvalidate, 0x01020304), {0xaa});
  host_->Post(SendOf(Opcode::kSendSolicitedInvalidate, 0x05060708), {0xbb});
  EXPECT_EQ(Next(), (Bytes{0x41, 0x44, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xaa}));
  EXPECT_EQ(Next(), (Bytes{0x41, 0x46, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xbb}));
}

TEST_F(Rfc5040, Section_4_8_AppendixA_6_SendsATerminate) {
  stream_->OnLowerLayerError(llp::Error::kDamaged);
  EXPECT_EQ(Next(), (Bytes{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 0x02, 0, 0}));
}

TEST_F(Rfc5040, Section_4_1_ClearsTheInvalidateStagOfOtherMessages) {
  host_->Post(SendOf(Opcode::kSend, 0xffffffff), {1});
  EXPECT_EQ(ddp::UntaggedHeader::Parse(*Next())->rsvd_ulp_word, 0u);
}

TEST_F(Rfc5040, Section_4_1_IgnoresTheInvalidateStagOfOtherMessages) {
  host_->PostReceive({10});
  Bytes segment = Untagged(Opcode::kSendSolicited, 1, 0, Pattern(3));
  segment[5] = 1;
  segment[4] = 1;
  EXPECT_TRUE(Receive(segment));
  ASSERT_EQ(host_->arrivals.size(), 1u);
  EXPECT_FALSE(host_->arrivals[0].message.invalidated);
  EXPECT_TRUE(host_->arrivals[0].message.solicited);
  EXPECT_NE(host_->FindRegion(kRegion), nullptr);
}

TEST_F(Rfc5040, Section_4_1_IgnoresReservedBitsOfTheControlField) {
  host_->PostReceive({10});
  Bytes segment = Untagged(Opcode::kSend, 1, 0, Pattern(3));
  segment[1] |= 0x30;
  EXPECT_TRUE(Receive(segment));
}

TEST_F(Rfc5040, Section_4_1_RefusesOtherVersions) {
  for (int version : {0, 2, 3}) {
    Restart({.ird = 2, .ord = 2});
    Bytes segment = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(3));
    segment[1] = static_cast<uint8_t>(version << 6);
    EXPECT_FALSE(Receive(segment));
    const TerminateMessage message = ExpectTerminate(Error::kInvalidVersion);
    ExpectQuotes(message, segment);
    EXPECT_FALSE(message.has_read_header);
  }
}

TEST_F(Rfc5040, Section_4_1_RefusesReservedOpcodes) {
  for (uint8_t opcode = 8; opcode < 16; ++opcode) {
    for (bool tagged : {false, true}) {
      Restart({.ird = 2, .ord = 2});
      host_->PostReceive({10});
      Bytes segment =
          tagged ? Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(3)) : Untagged(Opcode::kSend, 1, 0, Pattern(3));
      segment[1] = static_cast<uint8_t>(0x40 | opcode);
      EXPECT_FALSE(Receive(segment));
      ExpectQuotes(ExpectTerminate(Error::kUnexpectedOpcode), segment);
      EXPECT_EQ(host_->receives_taken, 0u);
    }
  }
}

TEST_F(Rfc5040, Section_4_1_RefusesEveryOpcodeInTheOtherBufferModel) {
  for (uint8_t opcode = 0; opcode < 8; ++opcode) {
    Restart({.ird = 2, .ord = 2});
    host_->PostReceive({100});
    const bool tagged = !FindOpcode(opcode)->tagged;
    Bytes segment =
        tagged ? Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(30)) : Untagged(Opcode::kSend, 1, 0, Pattern(30));
    segment[1] = static_cast<uint8_t>(0x40 | opcode);
    EXPECT_FALSE(Receive(segment)) << int{opcode};
    ExpectTerminate(Error::kUnexpectedOpcode);
    EXPECT_EQ(Memory(kRegion, 0, kSize), Pattern(kSize, 9));
  }
}

TEST_F(Rfc5040, Section_3_1_RefusesOpcodesOnTheWrongQueue) {
  for (uint8_t opcode : {1, 3, 4, 5, 6, 7}) {
    for (uint8_t queue = 0; queue < 3; ++queue) {
      if (queue == FindOpcode(opcode)->queue) continue;
      Restart({.ird = 2, .ord = 2});
      host_->PostReceive({100});
      Bytes segment = Untagged(static_cast<Opcode>(opcode), 1, 0, Pattern(28));
      segment[9] = queue;
      EXPECT_FALSE(Receive(segment)) << int{opcode} << ' ' << int{queue};
      ExpectTerminate(Error::kUnexpectedOpcode);
    }
  }
}

TEST_F(Rfc5040, Section_5_1_PlacesAWriteWithoutTellingTheProgram) {
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, kRegion.value, kBase + 5, Pattern(700))));
  EXPECT_EQ(Memory(kRegion, 5, 700), Pattern(700));
  EXPECT_TRUE(host_->arrivals.empty());
  EXPECT_FALSE(Next());
}

TEST_F(Rfc5040, Section_5_1_SendsAZeroLengthWrite) {
  host_->Post(WriteTo(1, 2), {});
  EXPECT_EQ(Next(), (Bytes{0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(host_->sent, std::vector<int>{0});
}

TEST_F(Rfc5040, Section_5_3_AZeroLengthSendConsumesABuffer) {
  host_->PostReceive({10});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, {})));
  EXPECT_EQ(host_->receives_taken, 1u);
  ASSERT_EQ(host_->arrivals.size(), 1u);
  EXPECT_EQ(host_->arrivals[0].message.length, 0u);
}

TEST_F(Rfc5040, Section_5_3_TellsTheSizeOfAMessageShorterThanItsBuffer) {
  host_->PostReceive({10, 10});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(15))));
  ASSERT_EQ(host_->arrivals.size(), 1u);
  EXPECT_EQ(host_->arrivals[0].bytes, Pattern(15));
}

TEST_F(Rfc5040, Section_5_3_AMessageLargerThanItsBufferIsAnError) {
  host_->PostReceive({10, 10});
  const Bytes segment = Untagged(Opcode::kSend, 1, 0, Pattern(21));
  EXPECT_FALSE(Receive(segment));
  ExpectQuotes(ExpectTerminate(ddp::Error::kMessageTooLong), segment);
  EXPECT_TRUE(host_->arrivals.empty());
}

TEST_F(Rfc5040, Section_5_3_DeliversSendsInOrder) {
  for (int i = 0; i < 3; ++i) host_->PostReceive({100});
  for (uint32_t i = 1; i <= 3; ++i) EXPECT_TRUE(Receive(Untagged(Opcode::kSend, i, 0, Pattern(i, i))));
  ASSERT_EQ(host_->arrivals.size(), 3u);
  for (uint32_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(host_->arrivals[i - 1].receive, i - 1);
    EXPECT_EQ(host_->arrivals[i - 1].bytes, Pattern(i, i));
  }
}

TEST_F(Rfc5040, Section_5_3_InvalidatesTheStagAndTellsTheProgram) {
  host_->PostReceive({10});
  Bytes segment = Untagged(Opcode::kSendSolicitedInvalidate, 1, 0, Pattern(3));
  segment[4] = 0x01;  // kRegion
  EXPECT_TRUE(Receive(segment));
  ASSERT_EQ(host_->arrivals.size(), 1u);
  EXPECT_EQ(host_->arrivals[0].message.invalidated, kRegion);
  EXPECT_TRUE(host_->arrivals[0].message.solicited);
  EXPECT_EQ(host_->FindRegion(kRegion), nullptr);
  const Bytes write = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(3));
  EXPECT_FALSE(Receive(write));
  ExpectQuotes(ExpectTerminate(ddp::Error::kInvalidStag), write);
}

TEST_F(Rfc5040, Section_5_3_RefusesToInvalidateAStagOfAnotherStream) {
  host_->PostReceive({10});
  Bytes segment = Untagged(Opcode::kSendInvalidate, 1, 0, Pattern(3));
  segment[4] = 0x02;  // kForeignRegion
  EXPECT_FALSE(Receive(segment));
  const TerminateMessage message = ExpectTerminate(Error::kCannotInvalidate);
  ExpectQuotes(message, segment);
  EXPECT_FALSE(message.has_read_header);
  EXPECT_TRUE(host_->arrivals.empty());
  EXPECT_NE(host_->FindRegion(kForeignRegion), nullptr);
}

TEST_F(Rfc5040, Section_7_2_RefusesToInvalidateAStagThatIsNotValid) {
  host_->PostReceive({10});
  Bytes segment = Untagged(Opcode::kSendInvalidate, 1, 0, Pattern(3));
  segment[2] = 0xee;
  EXPECT_FALSE(Receive(segment));
  ExpectQuotes(ExpectTerminate(Error::kInvalidStag), segment);
}

TEST_F(Rfc5040, Section_7_2_EndsTheStreamForSegmentsShorterThanTheirHeader) {
  const Bytes tagged = Tagged(Opcode::kWrite, kRegion.value, kBase, {});
  const Bytes untagged = Untagged(Opcode::kSend, 1, 0, {});
  for (const Bytes& segment : {tagged, untagged}) {
    for (size_t length = 1; length < segment.size(); ++length) {
      Restart({.ird = 2, .ord = 2});
      host_->PostReceive({10});
      EXPECT_FALSE(Receive(Bytes(segment.begin(), segment.begin() + static_cast<ptrdiff_t>(length)))) << length;
      EXPECT_EQ(ExpectTerminate(Error::kUnspecifiedOperation).ddp_header_length, 0);  // "if possible": it is not
      EXPECT_EQ(host_->receives_taken, 0u);
    }
  }
}

}  // namespace
}  // namespace weft::rdmap
