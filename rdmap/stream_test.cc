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

TEST(ReliableStream, AcknowledgementsAreWantedOfRequestsThatSomebodyWaitsFor) {
  testing::Endpoint from{{.ord = 4, .delivery = Delivery::kReliable}}, to{{.ird = 4, .delivery = Delivery::kReliable}};
  for (int i = 0; i < 3; ++i) to.host.PostReceive({3000});
  Request request;
  request.opcode = Opcode::kSend;
  request.acknowledge = false;
  from.host.Post(request, Pattern(3000));
  Exchange(from, to);
  EXPECT_EQ(to.stream.unacknowledged(), 1u);
  EXPECT_FALSE(to.stream.acknowledgement_wanted());
  request.acknowledge = true;
  from.host.Post(request, Pattern(3000));
  request.acknowledge = false;
  from.host.Post(request, Pattern(10));
  Exchange(from, to);
  EXPECT_TRUE(to.stream.acknowledgement_wanted());
  to.stream.Acknowledge();
  Exchange(from, to);
  EXPECT_EQ(to.stream.unacknowledged(), 0u);
  EXPECT_FALSE(to.stream.acknowledgement_wanted());
  EXPECT_EQ(from.host.sent.size(), 3u);
}

TEST(ReliableStream, AMessageTakesAlongOnlyWhatThePeerWaitsFor) {
  testing::Endpoint from{{.ord = 4, .delivery = Delivery::kReliable}}, to{{.ird = 4, .delivery = Delivery::kReliable}};
  Request request;
  request.opcode = Opcode::kSend;
  for (const bool wanted : {false, true}) {
    from.host.PostReceive({10});
    to.host.PostReceive({10});
    request.acknowledge = wanted;
    from.host.Post(request, Pattern(10));
    Exchange(from, to);
    request.acknowledge = false;
    to.host.Post(request, Pattern(10));
    Exchange(from, to);
    EXPECT_EQ(to.stream.unacknowledged(), wanted ? 0u : 1u);
    EXPECT_EQ(from.host.sent.size(), wanted ? 2u : 0u);
  }
}

TEST(ReliableStream, AnAnswerSaysThatWhatWasBeforeItIsDone) {
  testing::Endpoint from{{.ord = 4, .delivery = Delivery::kReliable}}, to{{.ird = 4, .delivery = Delivery::kReliable}};
  for (int i = 0; i < 2; ++i) to.host.PostReceive({10});
  to.host.AddRegion(ddp::STag(7), 0, 100);
  from.host.AddRegion(ddp::STag(8), 0, 100);
  Request request;
  request.opcode = Opcode::kSend;
  request.acknowledge = false;
  from.host.Post(request, Pattern(10));
  from.host.PostRead(ddp::STag(7), 0, 10, ddp::STag(8), 0);
  from.host.Post(request, Pattern(10));
  Move(from, to);
  EXPECT_TRUE(from.host.sent.empty());
  to.stream.Transmit(to.wire);
  ASSERT_TRUE(Deliver(from.stream, to.wire.Take()));
  EXPECT_EQ(from.host.reads_done, std::vector{1});
  EXPECT_EQ(from.host.sent, std::vector{0}) << "not what is behind it";
}

// Ends of a wire that carries acknowledgements beside what goes over it anyway.
class CarryingStream : public ::testing::Test {
 protected:
  CarryingStream() {
    for (testing::Endpoint* end : {&a_, &b_}) {
      end->wire.set_carries_acknowledgements(true);
      for (int i = 0; i < 4; ++i) end->host.PostReceive({3000});
    }
  }
  static void Send(testing::Endpoint& from, bool acknowledge = true) {
    Request request;
    request.opcode = Opcode::kSend;
    request.acknowledge = acknowledge;
    from.host.Post(request, Pattern(10));
  }

  testing::Endpoint a_{{.ird = 4, .ord = 4, .delivery = Delivery::kReliable}}, b_{{.ird = 4, .ord = 4, .delivery = Delivery::kReliable}};
};

TEST_F(CarryingStream, AnAnswerCarriesWhatIsOwed) {
  Send(a_);
  Send(a_);
  ASSERT_TRUE(Move(a_, b_));
  Send(b_);
  ASSERT_TRUE(b_.stream.Transmit(b_.wire));
  ASSERT_EQ(b_.wire.size(), 1u) << "nothing but the answer";
  EXPECT_EQ(b_.stream.unacknowledged(), 0u);
  EXPECT_TRUE(a_.host.sent.empty());
  const testing::Bytes answer = b_.wire.Take();
  EXPECT_EQ(b_.wire.taken_acknowledged(), 2);
  ASSERT_TRUE(Deliver(a_.stream, answer, b_.wire.taken_acknowledged()));
  EXPECT_EQ(a_.stream.acknowledged(), 2u);
  a_.stream.OnTransmitted(a_.wire.taken());
  EXPECT_EQ(a_.host.sent.size(), 2u);
}

TEST_F(CarryingStream, WhatFindsNoRoomAcknowledgesNothing) {
  Send(a_);
  ASSERT_TRUE(Move(a_, b_));
  Send(b_);
  b_.wire.set_room(0);
  EXPECT_FALSE(b_.stream.Transmit(b_.wire));
  EXPECT_EQ(b_.stream.unacknowledged(), 1u);
  EXPECT_TRUE(b_.stream.acknowledgement_wanted());
  b_.wire.set_room(1);
  EXPECT_TRUE(b_.stream.Transmit(b_.wire));
  b_.wire.Take();
  EXPECT_EQ(b_.wire.taken_acknowledged(), 1);
}

// A Write may be in the peer's memory before the peer looks at its record.
TEST_F(CarryingStream, AWriteCarriesNone) {
  Send(a_);
  ASSERT_TRUE(Move(a_, b_));
  Request request;
  request.opcode = Opcode::kWrite;
  b_.host.Post(request, {});
  ASSERT_TRUE(b_.stream.Transmit(b_.wire));
  ASSERT_EQ(b_.wire.size(), 2u) << "the acknowledgement has a segment of its own, in front";
  b_.wire.Take();
  EXPECT_EQ(b_.wire.taken_acknowledged(), 0);
}

TEST_F(CarryingStream, MoreThanWasSentIsALie) {
  Send(a_);
  ASSERT_TRUE(Move(a_, b_));
  Send(b_);
  ASSERT_TRUE(b_.stream.Transmit(b_.wire));
  EXPECT_FALSE(Deliver(a_.stream, b_.wire.Take(), 2));
  EXPECT_EQ(a_.stream.state(), StreamState::kTerminating);
}

TEST(PlainStream, IsAcknowledgedNothing) {
  testing::Endpoint a, b;
  a.host.PostReceive({10});
  Request request;
  request.opcode = Opcode::kSend;
  b.host.Post(request, Pattern(10));
  b.stream.Transmit(b.wire);
  EXPECT_FALSE(Deliver(a.stream, b.wire.Take(), 1));
  EXPECT_EQ(a.stream.state(), StreamState::kTerminating);
}

// A wire that places the payload of Writes in the peer's memory by itself.
class PlacingWire final : public llp::UlpduWriter {
 public:
  explicit PlacingWire(Wire& wire) : wire_(wire) {}

  size_t max_ulpdu() const override { return wire_.max_ulpdu(); }
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override { return wire_.HasRoom(payload_length, payload_pieces); }
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override {
    placed_ = places && (header[0] & 0x80) != 0;  // the T bit
    wire_.Append(header, payload, volatile_payload);
  }
  bool placed() const override { return placed_; }
  uint64_t appended() const override { return wire_.appended(); }

  bool places = true;

 private:
  Wire& wire_;
  bool placed_ = false;
};

// A wire that reads the peer's memory by itself, when it is told that it can.
class FetchingWire final : public llp::UlpduWriter {
 public:
  explicit FetchingWire(Wire& wire) : wire_(wire) {}

  size_t max_ulpdu() const override { return wire_.max_ulpdu(); }
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override { return wire_.HasRoom(payload_length, payload_pieces); }
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override {
    wire_.Append(header, payload, volatile_payload);
  }
  uint64_t appended() const override { return wire_.appended(); }
  bool Fetch(uint32_t tag, uint64_t offset, std::span<const iovec> to, size_t length, bool /*alone*/) override {
    EXPECT_EQ(tag, 7u);
    if (!can) return false;
    size_t room = 0;
    for (const iovec& piece : to) {
      std::memset(piece.iov_base, static_cast<int>(offset), piece.iov_len);
      room += piece.iov_len;
    }
    EXPECT_EQ(room, length);
    ++fetched;
    return true;
  }

  bool can = true;
  int fetched = 0;

 private:
  Wire& wire_;
};

class FetchedReadTest : public ::testing::Test {
 protected:
  explicit FetchedReadTest(Delivery delivery = Delivery::kReliable)
      : from_({.ord = 4, .delivery = delivery, .scatter_reads = delivery == Delivery::kReliable}), to_({.ird = 4, .delivery = delivery}) {
    to_.host.AddRegion(ddp::STag(7), 0, 100);
    from_.host.AddRegion(ddp::STag(8), 0, 100);
    for (int i = 0; i < 4; ++i) to_.host.PostReceive({10});
  }
  void PostRead(uint32_t length = 10) { from_.host.PostRead(ddp::STag(7), 42, length, ddp::STag(8), 0); }
  void PostSend() {
    Request request;
    request.opcode = Opcode::kSend;
    request.acknowledge = false;
    from_.host.Post(request, Pattern(10));
  }
  void Transmit() {
    from_.stream.Transmit(out_);
    from_.stream.OnTransmitted(from_.wire.appended());
  }

  testing::Endpoint from_, to_;
  FetchingWire out_{from_.wire};
};

TEST_F(FetchedReadTest, IsDoneAtOnceAndThePeerHearsNothing) {
  PostRead();
  const uint64_t before = from_.stream.answers();
  Transmit();
  EXPECT_EQ(from_.host.reads_done, std::vector{0});
  EXPECT_EQ(from_.host.FindRegion(ddp::STag(8))->bytes[9], 42);
  EXPECT_EQ(from_.host.FindRegion(ddp::STag(8))->bytes[10], 0);
  EXPECT_TRUE(from_.wire.empty());
  EXPECT_GT(from_.stream.answers(), before) << "the peer is there";
  // It has no number: what follows is the peer's first.
  PostSend();
  Transmit();
  Exchange(from_, to_);
  to_.stream.Acknowledge();
  Exchange(from_, to_);
  EXPECT_EQ(from_.stream.acknowledged(), 1u);
  EXPECT_EQ(from_.host.sent, std::vector{1});
}

TEST_F(FetchedReadTest, SaysThatWhatWasBeforeItIsDone) {
  PostSend();
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 1);
  EXPECT_EQ(from_.host.sent, std::vector{0});
}

TEST_F(FetchedReadTest, DoesNotOvertakeOneThatIsNotAnswered) {
  out_.can = false;
  PostRead();
  Transmit();
  out_.can = true;
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 0);
  EXPECT_EQ(from_.wire.size(), 2u);
  Exchange(from_, to_);
  EXPECT_EQ(from_.host.reads_done, (std::vector{0, 1}));
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 1);
}

TEST_F(FetchedReadTest, WhoReadsAndReadsLetsOthersHaveTheirTurn) {
  for (int i = 0; i < 30; ++i) PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 16);
  EXPECT_EQ(from_.wire.size(), 4u) << "of the others as many as may be under way";
  Exchange(from_, to_);
  EXPECT_EQ(from_.host.reads_done.size(), 30u);
}

TEST_F(FetchedReadTest, AnEmptyOneIsThePeersToAnswer) {
  PostRead(0);
  Transmit();
  EXPECT_EQ(out_.fetched, 0);
  EXPECT_EQ(from_.wire.size(), 1u);
}

TEST_F(FetchedReadTest, ThePeerNamesTheBufferThatIsReadAfterTheFirst) {
  out_.can = false;
  PostSend();
  PostRead();
  Transmit();
  for (const std::optional<uint32_t> expected : {std::optional<uint32_t>(), std::optional<uint32_t>(7)}) {
    const testing::Bytes segment = from_.wire.Take();
    ASSERT_TRUE(Deliver(to_.stream, segment));
    EXPECT_EQ(to_.stream.ReachedTag(segment), expected);
  }
}

class PlainFetchTest : public FetchedReadTest {
 protected:
  PlainFetchTest() : FetchedReadTest(Delivery::kPlain) {}
};

TEST_F(PlainFetchTest, APlainStreamAsksThePeer) {
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 0);
  EXPECT_EQ(from_.wire.size(), 1u);
}

class PlacedWriteTest : public ::testing::Test {
 protected:
  PlacedWriteTest() { to_.host.AddRegion(kRegion, kBase, kSize); }

  void Post(Opcode opcode, bool has_immediate = false) {
    Request request;
    request.opcode = opcode;
    request.has_immediate = has_immediate;
    request.remote_stag = kRegion;
    request.remote_offset = ddp::TaggedOffset(kBase);
    from_.host.Post(request, Pattern(100));
  }
  // All that waits leaves, and is not heard of by the peer yet.
  void Transmit() {
    from_.stream.Transmit(out_);
    from_.stream.OnTransmitted(from_.wire.appended());
  }
  void Hear() {
    while (!from_.wire.empty()) ASSERT_TRUE(Deliver(to_.stream, from_.wire.Take()));
    to_.stream.Acknowledge();
    Exchange(from_, to_);
  }

  testing::Endpoint from_{{.ord = 4, .delivery = Delivery::kReliable}}, to_{{.ird = 4, .delivery = Delivery::kReliable}};
  PlacingWire out_{from_.wire};
};

TEST_F(PlacedWriteTest, IsCarriedOutWithoutAWordOfThePeer) {
  for (size_t i = 1; i <= 3; ++i) {
    Post(Opcode::kWrite);
    const uint64_t before = from_.stream.answers();
    Transmit();
    EXPECT_EQ(from_.host.sent.size(), i);
    EXPECT_GT(from_.stream.answers(), before) << "the peer is at our requests";
  }
}

TEST_F(PlacedWriteTest, IsNotSentBeforeTheWireLetGoOfIt) {
  Post(Opcode::kWrite);
  from_.stream.Transmit(out_);
  EXPECT_TRUE(from_.host.sent.empty());
  from_.stream.OnTransmitted(from_.wire.appended());
  EXPECT_EQ(from_.host.sent.size(), 1u);
}

TEST_F(PlacedWriteTest, WaitsForWhatIsBeforeItAndNotAcknowledged) {
  to_.host.PostReceive({100});
  Post(Opcode::kSend);
  Post(Opcode::kWrite);
  Transmit();
  EXPECT_TRUE(from_.host.sent.empty());
  Hear();
  EXPECT_EQ(from_.host.sent, (std::vector<int>{0, 1}));
}

TEST_F(PlacedWriteTest, ThePeerMaySayLaterWhatWasAcceptedWithoutIt) {
  Post(Opcode::kWrite);
  Transmit();
  to_.host.PostReceive({100});
  Post(Opcode::kSend);
  Transmit();
  ASSERT_EQ(from_.host.sent.size(), 1u);
  ASSERT_TRUE(Deliver(to_.stream, from_.wire.Take()));
  to_.stream.Acknowledge();  // of the Write alone
  Exchange(to_, from_);
  EXPECT_EQ(from_.stream.state(), StreamState::kOperational);
  EXPECT_EQ(from_.host.sent.size(), 1u);
  Hear();
  EXPECT_EQ(from_.host.sent, (std::vector<int>{0, 1}));
}

TEST_F(PlacedWriteTest, WithImmediateDataThePeerHasToTakeIt) {
  to_.host.PostReceive({0});
  Post(Opcode::kWrite, /*has_immediate=*/true);
  Transmit();
  EXPECT_TRUE(from_.host.sent.empty());
  Hear();
  EXPECT_EQ(from_.host.sent.size(), 1u);
}

TEST_F(PlacedWriteTest, OneThatTheWireDidNotPlaceIsAcknowledged) {
  out_.places = false;
  Post(Opcode::kWrite);
  Transmit();
  EXPECT_TRUE(from_.host.sent.empty());
  Hear();
  EXPECT_EQ(from_.host.sent.size(), 1u);
}

// The Terminate of a reliable stream is in order with the answers, so that the request that it is about is the first that fails.
class ReliableTerminateTest : public ::testing::Test {
 protected:
  ReliableTerminateTest() {
    for (ddp::STag stag : {kRegion, kOther}) to_.host.AddRegion(stag, kBase, kSize);
    from_.host.AddRegion(kSink, kBase, kSize);
  }
  void PostRead(ddp::STag from, uint32_t length = kSize) { from_.host.PostRead(from, kBase, length, kSink, kBase); }
  void PostBadWrite() {
    Request request;
    request.opcode = Opcode::kWrite;
    request.remote_stag = ddp::STag(0xbad);
    from_.host.Post(request, Pattern(100));
  }
  void ExpectTerminated(size_t reads_done) const {
    EXPECT_EQ(from_.stream.state(), StreamState::kTerminated);
    EXPECT_EQ(from_.host.reads_done.size(), reads_done);
    EXPECT_FALSE(to_.stream.HasWork());
  }

  static constexpr ddp::STag kOther{0x120};
  testing::Endpoint from_{{.ord = 4, .delivery = Delivery::kReliable}};
  testing::Endpoint to_{{.ird = 4, .delivery = Delivery::kReliable}};
};

TEST_F(ReliableTerminateTest, FollowsTheAnswersToWhatCameBefore) {
  PostRead(kRegion);
  PostRead(kOther);
  PostBadWrite();
  Exchange(from_, to_);
  ExpectTerminated(2);
}

TEST_F(ReliableTerminateTest, ComesInPlaceOfTheAnswerThatItIsAbout) {
  PostRead(kRegion);
  PostRead(ddp::STag(0xbad));
  PostRead(kOther);
  Exchange(from_, to_);
  ExpectTerminated(1);
}

TEST_F(ReliableTerminateTest, AnswersGoOnInTheMiddleOfAMessage) {
  from_.host.PostReceive({kSize});
  Request request;
  request.opcode = Opcode::kSend;
  to_.host.Post(request, Pattern(kSize));
  to_.wire.set_room(2);
  to_.stream.Transmit(to_.wire);
  PostRead(kRegion);
  PostBadWrite();
  Move(from_, to_);
  ASSERT_EQ(to_.stream.state(), StreamState::kTerminating);
  to_.wire.set_room(100);
  Exchange(from_, to_);
  ExpectTerminated(1);
  EXPECT_TRUE(from_.host.arrivals.empty());
}

TEST_F(ReliableTerminateTest, MemoryThatGoesMeanwhileIsNotReadAnyMore) {
  PostRead(kRegion);
  PostRead(kOther);
  PostBadWrite();
  Move(from_, to_);
  ASSERT_EQ(to_.stream.state(), StreamState::kTerminating);
  EXPECT_TRUE(to_.stream.ForgetRegion(kOther));
  EXPECT_FALSE(to_.stream.ForgetRegion(kOther));
  Exchange(from_, to_);
  ExpectTerminated(1);
}

TEST_F(ReliableTerminateTest, MemoryThatIsGoneEndsTheAnswers) {
  PostRead(kRegion);
  PostRead(kOther);
  PostBadWrite();
  Move(from_, to_);
  to_.host.FindRegion(kRegion)->valid = false;
  Exchange(from_, to_);
  ExpectTerminated(0);
}

TEST_F(StreamTest, ThePlainTerminateGoesFirst) {
  ASSERT_TRUE(ReceiveReadRequest(1, 3000));
  stream_.Terminate({});
  EXPECT_EQ(Sequence(), "T");
}

// Requests that name a target (rdmap/delivery.h): `to_` serves two.
class TargetedStreamTest : public ::testing::Test {
 protected:
  TargetedStreamTest() {
    to_.host.targets = 2;
    for (uint32_t target : {1u, 2u}) to_.host.AddRegion(ddp::STag(target), kBase, kSize).target = target;
    from_.host.AddRegion(kSink, kBase, kSize);
  }

  void PostSend(uint32_t target, size_t length = 10) {
    Request request;
    request.opcode = Opcode::kSend;
    request.target = target;
    from_.host.Post(request, Pattern(length));
  }
  void Run() {
    Exchange(from_, to_);
    to_.stream.Acknowledge();
    Exchange(from_, to_);
  }
  std::vector<uint32_t> Targets() const {
    std::vector<uint32_t> targets;
    for (const FakeHost::Arrival& arrival : to_.host.arrivals) targets.push_back(arrival.target);
    return targets;
  }

  testing::Endpoint from_{{.ord = 4, .delivery = Delivery::kReliable}};
  testing::Endpoint to_{{.ird = 4, .delivery = Delivery::kReliable, .targeted = true}};
};

TEST_F(TargetedStreamTest, EachRequestReachesItsTarget) {
  for (uint32_t target : {1u, 1u, 2u, 1u, 2u}) {
    to_.host.PostReceive({3000});
    PostSend(target, 3000);
  }
  Run();
  EXPECT_EQ(Targets(), (std::vector<uint32_t>{1, 1, 2, 1, 2}));
  EXPECT_EQ(from_.host.sent.size(), 5u);
}

TEST_F(TargetedStreamTest, WhatIsSentAgainNamesItsTargetAgain) {
  PostSend(1);
  PostSend(2);
  PostSend(1);
  Run();
  ASSERT_TRUE(from_.host.not_ready);
  for (int i = 0; i < 3; ++i) to_.host.PostReceive({10});
  from_.host.not_ready = false;
  from_.stream.Resume();
  Run();
  EXPECT_EQ(Targets(), (std::vector<uint32_t>{1, 2, 1}));
}

TEST_F(TargetedStreamTest, AnUnknownTargetEndsTheStream) {
  to_.host.PostReceive({10});
  PostSend(1);
  PostSend(3);
  Run();
  EXPECT_EQ(Targets(), std::vector<uint32_t>{1});
  ASSERT_EQ(from_.stream.state(), StreamState::kTerminated);
  EXPECT_EQ(from_.stream.terminate()->layer, TerminateLayer::kDdp);
  EXPECT_EQ(from_.stream.terminate()->error_type, 2);
  EXPECT_EQ(from_.stream.terminate()->error_code, 1) << "invalid QN";
  EXPECT_EQ(from_.stream.acknowledged(), 1u) << "which tells the sender which request it is about";
}

TEST_F(TargetedStreamTest, AnUnknownTargetOfWhatIsDroppedIsNotLookedAt) {
  PostSend(1);
  PostSend(3);
  Run();
  ASSERT_TRUE(from_.host.not_ready);
  EXPECT_EQ(to_.stream.state(), StreamState::kOperational);
}

TEST_F(TargetedStreamTest, RequestsWithoutATargetEndTheStream) {
  to_.host.PostReceive({10});
  PostSend(0);
  Run();
  EXPECT_EQ(from_.stream.state(), StreamState::kTerminated);
  EXPECT_TRUE(to_.host.arrivals.empty());
}

TEST_F(TargetedStreamTest, AStreamThatIsNotTargetedRefusesTargets) {
  to_.host.PostReceive({10});
  PostSend(1);
  testing::Endpoint plain{{.delivery = Delivery::kReliable}};
  plain.host.PostReceive({10});
  Exchange(from_, plain);
  EXPECT_EQ(from_.stream.state(), StreamState::kTerminated);
  EXPECT_TRUE(plain.host.arrivals.empty());
}

TEST_F(TargetedStreamTest, ResponsesReadTheMemoryOfTheTargetThatTheirRequestWasFor) {
  for (uint32_t target : {1u, 2u, 1u}) from_.host.PostRead(ddp::STag(target), kBase, 100, kSink, kBase).request.target = target;
  Run();
  EXPECT_EQ(from_.host.reads_done.size(), 3u);
  // That of another is refused.
  from_.host.PostRead(ddp::STag(2), kBase, 100, kSink, kBase).request.target = 1;
  Run();
  ASSERT_EQ(from_.stream.state(), StreamState::kTerminated);
  EXPECT_EQ(from_.stream.terminate()->error_code, 3) << "STag not associated with the stream";
}

TEST_F(TargetedStreamTest, ATargetWithinAMessageEndsTheStream) {
  to_.host.PostReceive({3000});
  PostSend(1, 3000);
  from_.stream.Transmit(from_.wire);
  ASSERT_TRUE(Deliver(to_.stream, from_.wire.Take()));  // the target
  ASSERT_TRUE(Deliver(to_.stream, from_.wire.Take()));  // the first segment
  const DeliveryMessage message{.kind = DeliveryMessage::Kind::kTarget, .sequence = 2};
  Bytes payload(DeliveryMessage::kLength);
  message.Serialize(payload);
  EXPECT_FALSE(Deliver(to_.stream, testing::Untagged(Opcode::kDelivery, 0, 0, payload)));
  EXPECT_EQ(to_.stream.state(), StreamState::kTerminating);
}

}  // namespace
}  // namespace weft::rdmap
