// What the RNIC relies on beyond the wire: order of reports, fairness, fences, regions that go away, states.
#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include <cstring>

#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"
#include "rdmap/testing/wire.h"

namespace weft::rdmap {
namespace {

using testing::Bytes;
using testing::Deliver;
using testing::FakeHost;
using testing::Pattern;
using testing::Tagged;
using testing::Untagged;
using testing::Wire;

constexpr ddp::STag kRegion{0x100};
constexpr ddp::STag kSink{0x110};
constexpr uint64_t kBase = 0x10000;
constexpr size_t kSize = 8192;

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() : stream_({.ird = 4, .ord = 2}, host_) {
    host_.AddRegion(kRegion, kBase, kSize);
    host_.AddRegion(kSink, kBase, kSize);
  }

  bool Receive(const Bytes& segment) { return Deliver(stream_, segment); }
  void PostSend(size_t length, bool fence = false) {
    Request request;
    request.opcode = Opcode::kSend;
    request.fence = fence;
    host_.Post(request, Pattern(length));
  }
  void PostWrite(size_t length) {
    Request request;
    request.opcode = Opcode::kWrite;
    host_.Post(request, Pattern(length));
  }
  void PostRead(uint32_t length, bool fence = false) { host_.PostRead(kRegion, kBase, length, kSink, kBase, fence); }
  bool ReceiveReadRequest(uint32_t msn, uint32_t length) {
    return Receive(
        testing::ReadRequest(msn, {ddp::STag(1), ddp::TaggedOffset(0), length, kRegion, ddp::TaggedOffset(kBase)}));
  }
  bool ReceiveReadResponse(size_t length) {
    return Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(length)));
  }

  // The opcodes of the messages that go out now, in order; a letter each.
  std::string Sequence() {
    std::string sequence;
    stream_.Transmit(wire_);
    while (!wire_.empty()) {
      const Bytes segment = wire_.Take();
      sequence += "WQRSiseT"[segment[1] & 7];
      stream_.OnTransmitted(wire_.taken());
    }
    return sequence;
  }

  FakeHost host_;
  Stream stream_;
  Wire wire_{1014};  // 1000 bytes of a tagged message
};

TEST_F(StreamTest, ReportsSentOnlyWhenTheLastByteWasHandedDown) {
  PostSend(100);
  PostWrite(3000);
  stream_.Transmit(wire_);
  wire_.Take();
  const uint64_t first_end = wire_.taken();
  stream_.OnTransmitted(first_end - 1);
  EXPECT_TRUE(host_.sent.empty());
  stream_.OnTransmitted(first_end);
  EXPECT_EQ(host_.sent, std::vector<int>{0});
  stream_.OnTransmitted(wire_.appended() - 1);
  EXPECT_EQ(host_.sent, std::vector<int>{0});
  EXPECT_FALSE(stream_.idle());
  stream_.OnTransmitted(wire_.appended());
  EXPECT_EQ(host_.sent, (std::vector<int>{0, 1}));
  EXPECT_TRUE(stream_.idle());
}

// A wire may end several Writes before it places them (llp::UlpduPlan::deferrable).
TEST_F(StreamTest, WritesThatWereEndedAndAreNotPlacedAreNotCarriedOut) {
  const Bytes one = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(10));
  const Bytes first_part = Tagged(Opcode::kWrite, kRegion.value, kBase + 100, Pattern(10), /*last=*/false);
  const Bytes last_part = Tagged(Opcode::kWrite, kRegion.value, kBase + 110, Pattern(10));
  for (const Bytes& segment : {one, first_part, last_part, one}) ASSERT_TRUE(Receive(segment));
  ASSERT_EQ(stream_.received(), 3u);
  const auto unplaced = [this](const Bytes& segment, bool gone) { stream_.OnUnplaced(segment.size(), segment, gone); };
  unplaced(one, false);
  unplaced(last_part, false);
  EXPECT_EQ(stream_.state(), StreamState::kOperational);
  unplaced(first_part, true);
  EXPECT_EQ(stream_.received(), 1u);
  EXPECT_NE(stream_.state(), StreamState::kOperational);
  EXPECT_EQ(Sequence(), "T");
}

TEST_F(StreamTest, AReadWhoseFirstSegmentsAreNotPlacedIsToldOfAsOneWithoutMemory) {
  PostRead(2000);
  stream_.Transmit(wire_);
  const Bytes first_part = Tagged(Opcode::kReadResponse, kSink.value, kBase, Bytes(1000), /*last=*/false);
  ASSERT_TRUE(Receive(first_part));
  stream_.OnUnplaced(first_part.size(), first_part, /*gone=*/true);
  EXPECT_EQ(host_.sinks_gone, 1);
  EXPECT_FALSE(Receive(Tagged(Opcode::kReadResponse, kSink.value, kBase + 1000, Bytes(1000))));
  EXPECT_TRUE(host_.reads_done.empty());
}

TEST_F(StreamTest, ReportsManySentAtOnceInPostedOrder) {
  for (int i = 0; i < 10; ++i) (i % 2 == 0) ? PostSend(10) : PostWrite(10);
  stream_.Transmit(wire_);
  stream_.OnTransmitted(wire_.appended());
  EXPECT_EQ(host_.sent, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(StreamTest, ReportsNothingTwice) {
  PostSend(10);
  stream_.Transmit(wire_);
  stream_.OnTransmitted(wire_.appended());
  stream_.OnTransmitted(wire_.appended());
  EXPECT_EQ(host_.sent.size(), 1u);
}

TEST_F(StreamTest, HasWorkWhileThereIsARequestThatMayGo) {
  EXPECT_FALSE(stream_.HasWork());
  EXPECT_FALSE(stream_.Transmit(wire_));
  PostSend(10);
  EXPECT_TRUE(stream_.HasWork());
  EXPECT_TRUE(stream_.Transmit(wire_));
  EXPECT_FALSE(stream_.HasWork());
  EXPECT_FALSE(stream_.Transmit(wire_));
}

TEST_F(StreamTest, HasWorkInTheMiddleOfAMessage) {
  PostSend(5000);
  wire_.set_room(2);
  EXPECT_TRUE(stream_.Transmit(wire_));
  EXPECT_TRUE(stream_.HasWork());
  EXPECT_FALSE(stream_.Transmit(wire_));  // no room
  EXPECT_FALSE(stream_.idle());
}

TEST_F(StreamTest, AlternatesResponsesAndRequestsMessageByMessage) {
  for (uint32_t msn = 1; msn <= 3; ++msn) ASSERT_TRUE(ReceiveReadRequest(msn, 2000));
  for (int i = 0; i < 3; ++i) PostWrite(2000);
  EXPECT_EQ(Sequence(), "RRWWRRWWRRWW");
}

TEST_F(StreamTest, KeepsTheTurnAcrossCalls) {
  for (uint32_t msn = 1; msn <= 2; ++msn) ASSERT_TRUE(ReceiveReadRequest(msn, 10));
  PostWrite(10);
  PostWrite(10);
  wire_.set_room(1);
  std::string sequence;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(stream_.Transmit(wire_));
    sequence += (wire_.Take()[1] & 7) == 2 ? 'R' : 'W';
  }
  EXPECT_EQ(sequence, "RWRW");
}

TEST_F(StreamTest, AFenceWaitsForEarlierReads) {
  PostRead(4);
  PostSend(4);
  PostSend(4, /*fence=*/true);
  PostSend(4);
  EXPECT_EQ(Sequence(), "QS");
  EXPECT_FALSE(stream_.HasWork());
  ASSERT_TRUE(ReceiveReadResponse(4));
  EXPECT_EQ(Sequence(), "SS");
}

TEST_F(StreamTest, AFenceWaitsForNothingElse) {
  PostWrite(5000);
  PostSend(4, /*fence=*/true);
  EXPECT_EQ(Sequence(), "WWWWWS");
}

TEST_F(StreamTest, AFencedReadWaitsForTheReadBeforeIt) {
  PostRead(4);
  PostRead(4, /*fence=*/true);
  EXPECT_EQ(Sequence(), "Q");
  ASSERT_TRUE(ReceiveReadResponse(4));
  EXPECT_EQ(Sequence(), "Q");
}

TEST_F(StreamTest, ResponsesGoOnWhileRequestsWait) {
  for (int i = 0; i < 3; ++i) PostRead(4);
  PostWrite(4);
  for (uint32_t msn = 1; msn <= 3; ++msn) ASSERT_TRUE(ReceiveReadRequest(msn, 4));
  EXPECT_EQ(Sequence(), "RQRQR");
}

TEST_F(StreamTest, SendsNoReadWithoutOrd) {
  Stream stream({.ird = 0, .ord = 0}, host_);
  PostRead(4);
  EXPECT_FALSE(stream.HasWork());
  EXPECT_FALSE(stream.Transmit(wire_));
  EXPECT_TRUE(host_.started.empty());
}

TEST_F(StreamTest, CopiesInlinePayloadAtOnce) {
  Request request;
  request.opcode = Opcode::kSend;
  request.volatile_local = true;
  FakeHost::Posted& posted = host_.Post(request, {1, 2, 3});
  stream_.Transmit(wire_);
  posted.pieces[0] = {9, 9, 9};
  const Bytes segment = wire_.Take();
  EXPECT_EQ(Bytes(segment.begin() + 18, segment.end()), (Bytes{1, 2, 3}));
}

TEST_F(StreamTest, AMessageAsksForTheMemoryThatItsBytesGoInto) {
  host_.good_pieces = 2;
  host_.PostReceive({4, 4, 4});
  ASSERT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(3), false)));
  ASSERT_TRUE(Receive(Untagged(Opcode::kSend, 1, 3, Bytes(5, 9))));
  ASSERT_EQ(host_.arrivals.size(), 1u);
  EXPECT_EQ(host_.arrivals[0].bytes.size(), 8u);
  EXPECT_EQ(host_.arrivals[0].bytes[7], 9);
  host_.PostReceive({4, 4, 4});
  ASSERT_TRUE(Receive(Untagged(Opcode::kSend, 2, 0, Pattern(8), false)));
  EXPECT_FALSE(Receive(Untagged(Opcode::kSend, 2, 8, Pattern(1))));
  EXPECT_EQ(stream_.state(), StreamState::kTerminating);
  EXPECT_EQ(host_.arrivals.size(), 1u);
}

TEST_F(StreamTest, IsIdleOnlyWhenNothingIsHalfDone) {
  EXPECT_TRUE(stream_.idle());
  host_.PostReceive({100});
  ASSERT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(4), false)));
  EXPECT_FALSE(stream_.idle());
  ASSERT_TRUE(Receive(Untagged(Opcode::kSend, 1, 4, Pattern(4))));
  EXPECT_TRUE(stream_.idle());
  ASSERT_TRUE(Receive(Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(4), false)));
  EXPECT_FALSE(stream_.idle());
  ASSERT_TRUE(Receive(Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(4))));
  EXPECT_TRUE(stream_.idle());
  ASSERT_TRUE(ReceiveReadRequest(1, 4));
  EXPECT_FALSE(stream_.idle());
  Sequence();
  EXPECT_TRUE(stream_.idle());
  PostRead(4);
  Sequence();
  EXPECT_FALSE(stream_.idle());
  ASSERT_TRUE(ReceiveReadResponse(4));
  EXPECT_TRUE(stream_.idle());
}

TEST_F(StreamTest, IsNotIdleBetweenBeginAndEnd) {
  const Bytes segment = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(4));
  llp::UlpduPlan plan;
  ASSERT_TRUE(stream_.Begin(segment.size(), segment, &plan));
  EXPECT_FALSE(stream_.idle());
  ASSERT_TRUE(stream_.End());
  EXPECT_TRUE(stream_.idle());
}

TEST_F(StreamTest, TellsItsOwnMemoryFromThePrograms) {
  host_.PostReceive({8});
  const auto names_ours = [this](const Bytes& segment) {
    llp::UlpduPlan plan;
    EXPECT_TRUE(stream_.Begin(segment.size(), segment, &plan));
    for (const iovec& piece : plan.payload) std::memcpy(piece.iov_base, segment.data() + plan.header_length, piece.iov_len);
    EXPECT_TRUE(stream_.End());
    return plan.ours;
  };
  EXPECT_FALSE(names_ours(Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(4))));
  EXPECT_TRUE(names_ours(testing::ReadRequest(1, {ddp::STag(1), ddp::TaggedOffset(0), 4, kRegion, ddp::TaggedOffset(kBase)})));
  EXPECT_FALSE(names_ours(Untagged(Opcode::kSend, 1, 0, Pattern(4))));
}

// Regions that go away.

TEST_F(StreamTest, ForgettingARegionThatNobodyUsesChangesNothing) {
  EXPECT_FALSE(stream_.ForgetRegion(kRegion));
  EXPECT_EQ(stream_.state(), StreamState::kOperational);
}

TEST_F(StreamTest, ForgettingTheRegionBeingPlacedIntoEndsTheStream) {
  const Bytes segment = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(4));
  llp::UlpduPlan plan;
  ASSERT_TRUE(stream_.Begin(segment.size(), segment, &plan));
  EXPECT_FALSE(stream_.ForgetRegion(kSink));
  EXPECT_TRUE(stream_.ForgetRegion(kRegion));
  EXPECT_FALSE(stream_.End());
  ASSERT_TRUE(stream_.terminate());
  EXPECT_EQ(stream_.terminate()->ToString(), "RDMAP remote protection error: invalid STag (layer 0 type 1 code 0x00)");
  EXPECT_EQ(stream_.terminate()->ddp_segment_length, segment.size());
}

TEST_F(StreamTest, AnEmptyWriteUsesNoRegion) {
  const Bytes segment = Tagged(Opcode::kWrite, kRegion.value, kBase, {});
  llp::UlpduPlan plan;
  ASSERT_TRUE(stream_.Begin(segment.size(), segment, &plan));
  EXPECT_FALSE(stream_.ForgetRegion(kRegion));
  EXPECT_TRUE(stream_.End());
}

TEST_F(StreamTest, TellsThatTheRegionIsBeingPlacedIntoEvenAfterTheStreamEnded) {
  const Bytes segment = Tagged(Opcode::kWrite, kRegion.value, kBase, Pattern(4));
  llp::UlpduPlan plan;
  ASSERT_TRUE(stream_.Begin(segment.size(), segment, &plan));
  stream_.Terminate({});
  EXPECT_TRUE(stream_.ForgetRegion(kRegion));
  EXPECT_FALSE(stream_.End());
}

TEST_F(StreamTest, ForgettingTheSourceOfAQueuedResponseEndsTheStream) {
  ASSERT_TRUE(ReceiveReadRequest(1, 0));
  EXPECT_FALSE(stream_.ForgetRegion(kRegion));
  ASSERT_TRUE(ReceiveReadRequest(2, 4));
  EXPECT_TRUE(stream_.ForgetRegion(kRegion));
  EXPECT_EQ(Sequence(), "T");
  EXPECT_TRUE(stream_.terminate()->has_read_header);
}

TEST_F(StreamTest, ForgettingTheSourceInTheMiddleOfAResponseTellsHowFarItGot) {
  ASSERT_TRUE(ReceiveReadRequest(1, 3000));
  wire_.set_room(1);
  stream_.Transmit(wire_);
  EXPECT_TRUE(stream_.ForgetRegion(kRegion));
  const auto rest = ReadRequestHeader::Parse(stream_.terminate()->read_header);
  EXPECT_EQ(rest->length, 2000u);
  wire_.Take();
  EXPECT_EQ(Sequence(), "T");
}

TEST_F(StreamTest, ForgettingTheSinkOfAnOutstandingReadEndsTheStream) {
  PostRead(4);
  EXPECT_FALSE(stream_.ForgetRegion(kSink));  // not started: its request says where, later
  Sequence();
  EXPECT_FALSE(stream_.ForgetRegion(kRegion));
  EXPECT_TRUE(stream_.ForgetRegion(kSink));
  EXPECT_EQ(Sequence(), "T");
  EXPECT_FALSE(ReceiveReadResponse(4));
  EXPECT_TRUE(host_.reads_done.empty());
}

TEST_F(StreamTest, AnInvalidatedRegionIsNotReadAnyMoreByAResponse) {
  ASSERT_TRUE(ReceiveReadRequest(1, 4));
  host_.PostReceive({});
  Bytes send = Untagged(Opcode::kSendInvalidate, 1, 0, {});
  send[4] = 1;  // kRegion
  ASSERT_TRUE(Receive(send));
  EXPECT_EQ(Sequence(), "T");
  EXPECT_EQ(stream_.terminate()->ToString(), "RDMAP remote protection error: invalid STag (layer 0 type 1 code 0x00)");
}

TEST_F(StreamTest, LeavesRequestsAloneAfterTheEnd) {
  PostRead(4);
  PostSend(3000);
  wire_.set_room(2);
  stream_.Transmit(wire_);
  stream_.Terminate({});
  wire_.set_room(100);
  stream_.Transmit(wire_);
  stream_.OnTransmitted(wire_.appended());
  EXPECT_EQ(host_.started.size(), 2u);
  EXPECT_TRUE(host_.sent.empty());
  EXPECT_TRUE(host_.reads_done.empty());
}

TEST_F(StreamTest, TheTerminateWaitsForRoom) {
  PostSend(10);
  wire_.set_room(1);
  stream_.Transmit(wire_);
  stream_.Terminate({});
  EXPECT_FALSE(stream_.Transmit(wire_));
  EXPECT_EQ(stream_.terminate_end_position(), 0u);
  EXPECT_TRUE(stream_.HasWork());
  wire_.Take();
  EXPECT_TRUE(stream_.Transmit(wire_));
  EXPECT_EQ(stream_.terminate_end_position(), wire_.appended());
}

TEST_F(StreamTest, ThePlainTerminateGoesFirst) {
  ASSERT_TRUE(ReceiveReadRequest(1, 3000));
  stream_.Terminate({});
  EXPECT_EQ(Sequence(), "T");
}

}  // namespace
}  // namespace weft::rdmap
