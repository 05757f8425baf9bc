// RFC 5040 sections 5.2 and 7.2: RDMA Reads, as the Data Source and as the Data Sink.
#include "tests/conformance/rdmap/harness.h"

namespace weft::rdmap {
namespace {

using testing::Bytes;
using testing::Pattern;
using testing::Tagged;

constexpr uint32_t kPeerSink = 0x777;

class Rfc5040Read : public RdmapTest {
 protected:
  static ReadRequestHeader Ask(uint32_t length, ddp::STag source = kRegion, uint64_t source_offset = kBase) {
    return {ddp::STag(kPeerSink), ddp::TaggedOffset(0x5000), length, source, ddp::TaggedOffset(source_offset)};
  }
  void ExpectReadRefused(const ReadRequestHeader& header, Error error) {
    const Bytes segment = testing::ReadRequest(1, header);
    EXPECT_FALSE(Receive(segment));
    const TerminateMessage message = ExpectTerminate(error);
    ExpectQuotes(message, segment);
    ASSERT_TRUE(message.has_read_header);
    EXPECT_TRUE(std::equal(message.read_header.begin(), message.read_header.end(), segment.begin() + 18));
  }
};

TEST_F(Rfc5040Read, Section_5_2_1_AnswersWithTheMemoryAskedFor) {
  ASSERT_TRUE(Receive(testing::ReadRequest(1, Ask(100, kRegion, kBase + 7))));
  const auto response = Next();
  ASSERT_TRUE(response);
  const auto header = ddp::TaggedHeader::Parse(*response);
  EXPECT_EQ(OpcodeOf(*response), Opcode::kReadResponse);
  EXPECT_EQ(header->stag, ddp::STag(kPeerSink));
  EXPECT_EQ(header->offset, ddp::TaggedOffset(0x5000));
  EXPECT_TRUE(header->last);
  EXPECT_EQ(Bytes(response->begin() + 14, response->end()), Memory(kRegion, 7, 100));
}

TEST_F(Rfc5040Read, Section_5_2_1_SegmentsALongResponse) {
  ASSERT_TRUE(Receive(testing::ReadRequest(1, Ask(kSize))));
  Bytes joined;
  while (const auto segment = Next()) {
    const auto header = ddp::TaggedHeader::Parse(*segment);
    EXPECT_EQ(header->offset, ddp::TaggedOffset(0x5000 + joined.size()));
    joined.insert(joined.end(), segment->begin() + 14, segment->end());
    EXPECT_EQ(header->last, joined.size() == kSize);
  }
  EXPECT_EQ(joined, Memory(kRegion, 0, kSize));
}

TEST_F(Rfc5040Read, Section_5_2_1_DoesNotValidateTheSourceOfAZeroLengthRead) {
  ASSERT_TRUE(Receive(testing::ReadRequest(1, Ask(0, ddp::STag(0xdead), UINT64_MAX))));
  EXPECT_EQ(Next(), Tagged(Opcode::kReadResponse, kPeerSink, 0x5000, {}));
  EXPECT_EQ(host_->resolved, 0u);
}

TEST_F(Rfc5040Read, Section_5_2_2_AnswersInTheOrderOfTheRequests) {
  ASSERT_TRUE(Receive(testing::ReadRequest(1, Ask(4, kRegion, kBase))));
  ASSERT_TRUE(Receive(testing::ReadRequest(2, Ask(4, kRegion, kBase + 100))));
  const auto first = Next();
  const auto second = Next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(Bytes(first->begin() + 14, first->end()), Memory(kRegion, 0, 4));
  EXPECT_EQ(Bytes(second->begin() + 14, second->end()), Memory(kRegion, 100, 4));
}

TEST_F(Rfc5040Read, Section_5_2_1_TakesARequestCutIntoSegments) {
  const Bytes whole = testing::ReadRequest(1, Ask(4));
  const Bytes header(whole.begin() + 18, whole.end());
  for (size_t cut = 0; cut <= header.size(); ++cut) {
    Restart({.ird = 2, .ord = 2});
    const auto at = header.begin() + static_cast<ptrdiff_t>(cut);
    ASSERT_TRUE(Receive(testing::Untagged(Opcode::kReadRequest, 1, 0, Bytes(header.begin(), at), false)));
    EXPECT_FALSE(stream_->HasWork());
    ASSERT_TRUE(
        Receive(testing::Untagged(Opcode::kReadRequest, 1, static_cast<uint32_t>(cut), Bytes(at, header.end()), true)));
    const auto response = Next();
    ASSERT_TRUE(response) << cut;
    EXPECT_EQ(Bytes(response->begin() + 14, response->end()), Memory(kRegion, 0, 4));
  }
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesMoreRequestsThanTheInboundReadQueueHolds) {
  ASSERT_TRUE(Receive(testing::ReadRequest(1, Ask(4))));
  ASSERT_TRUE(Receive(testing::ReadRequest(2, Ask(4))));
  const Bytes third = testing::ReadRequest(3, Ask(4));
  EXPECT_FALSE(Receive(third));
  ExpectQuotes(ExpectTerminate(ddp::Error::kNoBuffer), third);
}

TEST_F(Rfc5040Read, Section_5_2_2_TakesNoReadWhenTheInboundReadQueueHasNoRoomAtAll) {
  Restart({.ird = 0, .ord = 2});
  EXPECT_FALSE(Receive(testing::ReadRequest(1, Ask(0))));
  ExpectTerminate(ddp::Error::kNoBuffer);
}

TEST_F(Rfc5040Read, Section_5_2_2_TakesTheNextRequestWhenAResponseIsOut) {
  for (uint32_t msn = 1; msn <= 10; ++msn) {
    ASSERT_TRUE(Receive(testing::ReadRequest(msn, Ask(4))));
    EXPECT_TRUE(Next());
  }
}

TEST_F(Rfc5040Read, Section_7_2_RefusesAnInvalidSourceStag) {
  ExpectReadRefused(Ask(4, ddp::STag(0xdead)), Error::kInvalidStag);
}

TEST_F(Rfc5040Read, Section_7_2_RefusesASourceStagOfAnotherStream) {
  ExpectReadRefused(Ask(4, kForeignRegion), Error::kStagNotAssociated);
}

TEST_F(Rfc5040Read, Section_7_2_RefusesASourceWithoutReadRights) {
  ExpectReadRefused(Ask(4, kWriteOnlyRegion), Error::kAccessRights);
}

TEST_F(Rfc5040Read, Section_7_2_RefusesASourceOffsetBelowTheBase) {
  ExpectReadRefused(Ask(4, kRegion, kBase - 1), Error::kBaseOrBounds);
}

TEST_F(Rfc5040Read, Section_7_2_RefusesASourceThatEndsBeyondTheBounds) {
  ExpectReadRefused(Ask(kSize + 1), Error::kBaseOrBounds);
}

TEST_F(Rfc5040Read, Section_7_2_RefusesASourceOffsetThatWraps) {
  ExpectReadRefused(Ask(UINT32_MAX, kRegion, UINT64_MAX - 10), Error::kOffsetWrap);
}

TEST_F(Rfc5040Read, Section_7_2_RefusesARequestShorterThanItsHeader) {
  EXPECT_FALSE(Receive(testing::Untagged(Opcode::kReadRequest, 1, 0, Bytes(27))));
  ExpectTerminate(Error::kUnspecifiedOperation);
}

TEST_F(Rfc5040Read, Section_7_2_RefusesARequestLongerThanItsHeader) {
  EXPECT_FALSE(Receive(testing::Untagged(Opcode::kReadRequest, 1, 0, Bytes(29))));
  ExpectTerminate(ddp::Error::kMessageTooLong);
}

TEST_F(Rfc5040Read, Section_4_8_TellsHowFarAResponseGotWhenItsSourceGoesAway) {
  ASSERT_TRUE(Receive(testing::ReadRequest(1, Ask(3000))));
  wire_.set_room(1);
  ASSERT_TRUE(Next());  // 1446 bytes of it
  host_->FindRegion(kRegion)->valid = false;
  const TerminateMessage message = ExpectTerminate(Error::kInvalidStag);
  ASSERT_TRUE(message.has_read_header);
  const auto rest = ReadRequestHeader::Parse(message.read_header);
  EXPECT_EQ(rest->sink_stag, ddp::STag(kPeerSink));
  EXPECT_EQ(rest->sink_offset, ddp::TaggedOffset(0x5000 + 1446));
  EXPECT_EQ(rest->length, 3000u - 1446);
  EXPECT_EQ(rest->source_stag, kRegion);
  EXPECT_EQ(rest->source_offset, ddp::TaggedOffset(kBase + 1446));
  EXPECT_EQ(message.ddp_segment_length, 46);
  EXPECT_EQ(message.ddp_header_length, 18);
}

// The Data Sink.

TEST_F(Rfc5040Read, Section_5_2_2_PlacesTheResponseAndCompletesTheRead) {
  host_->PostRead(ddp::STag(1), 0, 100, kSink, kBase + 3);
  ASSERT_TRUE(Next());
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase + 3, Bytes(60, 1), false)));
  EXPECT_TRUE(host_->reads_done.empty());
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase + 63, Bytes(40, 2))));
  EXPECT_EQ(host_->reads_done, std::vector<int>{0});
  EXPECT_EQ(Memory(kSink, 62, 2), (Bytes{1, 2}));
  EXPECT_EQ(Memory(kSink, 102, 2), (Bytes{2, 0}));
}

TEST_F(Rfc5040Read, Section_5_2_1_CompletesAZeroLengthRead) {
  host_->PostRead(ddp::STag(1), 0, 0, ddp::STag(0), 0);
  EXPECT_EQ(ReadOf(*Next()).length, 0u);
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, 0x1234, 0x99, {})));
  EXPECT_EQ(host_->reads_done, std::vector<int>{0});
  EXPECT_EQ(host_->resolved, 0u);
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesAResponseThatNobodyAskedFor) {
  const Bytes segment = Tagged(Opcode::kReadResponse, kSink.value, kBase, Pattern(4));
  EXPECT_FALSE(Receive(segment));
  ExpectQuotes(ExpectTerminate(Error::kUnexpectedOpcode), segment);
  EXPECT_EQ(Memory(kSink, 0, 4), Bytes(4));
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesASecondResponseToOneRequest) {
  host_->PostRead(ddp::STag(1), 0, 4, kSink, kBase);
  ASSERT_TRUE(Next());
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(4, 1))));
  EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(4, 2))));
  ExpectTerminate(Error::kUnexpectedOpcode);
  EXPECT_EQ(Memory(kSink, 0, 4), Bytes(4, 1));
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesAResponseIntoAnotherBuffer) {
  host_->PostRead(ddp::STag(1), 0, 4, kSink, kBase);
  ASSERT_TRUE(Next());
  EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kRegion.value, kBase, Bytes(4))));
  ExpectTerminate(ddp::Error::kInvalidStag);
  EXPECT_TRUE(host_->reads_done.empty());
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesAResponseAtAnotherOffset) {
  for (int shift : {-1, 1}) {
    Restart({.ird = 2, .ord = 2});
    host_->PostRead(ddp::STag(1), 0, 4, kSink, kBase + 8);
    ASSERT_TRUE(Next());
    EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase + 8 + shift, Bytes(2), false)));
    ExpectTerminate(ddp::Error::kBaseOrBounds);
  }
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesAGapInAResponse) {
  host_->PostRead(ddp::STag(1), 0, 4, kSink, kBase);
  ASSERT_TRUE(Next());
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(2, 1), false)));
  EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase + 3, Bytes(1, 1))));
  ExpectTerminate(ddp::Error::kBaseOrBounds);
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesAResponseLongerThanAskedFor) {
  host_->PostRead(ddp::STag(1), 0, 4, kSink, kBase);
  ASSERT_TRUE(Next());
  EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(5, 1))));
  ExpectTerminate(ddp::Error::kBaseOrBounds);
  EXPECT_EQ(Memory(kSink, 0, 4), Bytes(4));
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesAResponseThatEndsShort) {
  for (size_t length : {0, 3}) {
    Restart({.ird = 2, .ord = 2});
    host_->PostRead(ddp::STag(1), 0, 4, kSink, kBase);
    ASSERT_TRUE(Next());
    EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(length))));
    ExpectTerminate(Error::kUnspecifiedOperation);
    EXPECT_TRUE(host_->reads_done.empty());
  }
}

TEST_F(Rfc5040Read, Section_5_2_2_RefusesPayloadInAnswerToAZeroLengthRead) {
  host_->PostRead(ddp::STag(1), 0, 0, kSink, kBase);
  ASSERT_TRUE(Next());
  EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(1))));
  ExpectTerminate(ddp::Error::kBaseOrBounds);
}

TEST_F(Rfc5040Read, Section_6_1_HasNoMoreReadsOutstandingThanAgreed) {
  for (int i = 0; i < 3; ++i) host_->PostRead(ddp::STag(1), 0, 1, kSink, kBase + static_cast<uint64_t>(i));
  EXPECT_TRUE(Next());
  EXPECT_TRUE(Next());
  EXPECT_FALSE(Next());
  EXPECT_FALSE(stream_->HasWork());
  EXPECT_EQ(stream_->outstanding_reads(), 2u);
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(1))));
  EXPECT_TRUE(stream_->HasWork());
  EXPECT_TRUE(Next());
  EXPECT_FALSE(Next());
}

TEST_F(Rfc5040Read, Section_5_5_RequestsBehindAReadThatWaitsStayBehindIt) {
  for (int i = 0; i < 3; ++i) host_->PostRead(ddp::STag(1), 0, 1, kSink, kBase);
  host_->Post({.opcode = Opcode::kSend}, Pattern(4));
  Next();
  Next();
  EXPECT_FALSE(Next());
  ASSERT_TRUE(Receive(testing::ReadRequest(1, Ask(4))));
  EXPECT_EQ(OpcodeOf(*Next()), Opcode::kReadResponse);  // the other direction goes on
  EXPECT_FALSE(Next());
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(1))));
  EXPECT_EQ(OpcodeOf(*Next()), Opcode::kReadRequest);
  EXPECT_EQ(OpcodeOf(*Next()), Opcode::kSend);
}

}  // namespace
}  // namespace weft::rdmap
