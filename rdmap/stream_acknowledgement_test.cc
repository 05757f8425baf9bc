// What a reliable stream acknowledges and when, and its Terminate, which is in order with its answers.
#include <gtest/gtest.h>

#include <vector>

#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"
#include "rdmap/testing/wire.h"

namespace weft::rdmap {
namespace {

using testing::Deliver;
using testing::Pattern;

constexpr ddp::STag kRegion{0x100};
constexpr ddp::STag kSink{0x110};
constexpr uint64_t kBase = 0x10000;
constexpr size_t kSize = 8192;

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

}  // namespace
}  // namespace weft::rdmap
