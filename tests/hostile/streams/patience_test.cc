#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "rdmap/delivery.h"
#include "tests/hostile/streams/stage.h"

// Peers that take their time: none keeps a program waiting without an end, or a thread busy.
namespace weft::hostile {
namespace {

using rdmap::Delivery;
using rdmap::DeliveryMessage;
using rdmap::Opcode;
using rdmap::testing::ReadRequest;
using rdmap::testing::Tagged;
using rdmap::testing::Untagged;
using sim::RegionInfo;
using sim::testing::Program;

Bytes DeliverySegment(const DeliveryMessage& message) {
  Bytes payload(DeliveryMessage::kLength);
  message.Serialize(payload);
  return Untagged(Opcode::kDelivery, 0, 0, payload);
}

class Patience : public ::testing::Test {
 protected:
  Patience() : bytes_(8 << 20, 0x11) { region_ = victim_.Register(bytes_.data(), bytes_.size()); }

  Bytes BigRead(uint32_t msn) {
    return ReadRequest(msn, {ddp::STag(1), ddp::TaggedOffset(0), static_cast<uint32_t>(bytes_.size()), region_.stag,
                             ddp::TaggedOffset(region_.address)});
  }

  int PostWrite(uint32_t length = 8) {
    ibv_send_wr write{};
    write.opcode = IBV_WR_RDMA_WRITE;
    write.wr.rdma.rkey = 0x1234;
    return PostSend(victim_, write, region_, 0, length);
  }

  // What the network's thread does in the next second, at most 100,000 handlers and pieces of work.
  int StepsOfASecond() {
    const auto until = stage_.network().Now() + std::chrono::seconds(1);
    int steps = 0;
    while (stage_.network().Now() < until && steps < 100'000 && stage_.network().Step()) ++steps;
    return steps;
  }

  Stage stage_;
  std::vector<uint8_t> bytes_;
  Program victim_{stage_.rnic()};
  RegionInfo region_;
};

// rdma_cm's queue pairs: timeout 18 (1.07 s), 7 retries, so 8.6 s; a peer that talks of other things has eight times
// that.
TEST_F(Patience, APeerThatTalksAndNeverAcknowledgesIsGivenUp) {
  if (!stage_.roce()) return;  // plain iWARP has no acknowledgements
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kReliable});
  ASSERT_EQ(PostWrite(), 0);
  const Bytes nothing_new = DeliverySegment({.kind = DeliveryMessage::Kind::kAcknowledge, .sequence = 0});
  int seconds = 0;
  for (; seconds < 200 && victim_.qp.qp->state() == IBV_QPS_RTS; ++seconds) {
    peer->Send(nothing_new);
    stage_.Pass(std::chrono::seconds(1));
  }
  EXPECT_GT(seconds, 60);
  EXPECT_LT(seconds, 90);
  const auto completion = Stage::Completion(victim_);
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(Patience, APeerThatAcknowledgesLateButStepByStepIsNot) {
  if (!stage_.roce()) return;
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kReliable});
  for (int i = 0; i < 10; ++i) ASSERT_EQ(PostWrite(), 0);
  for (uint32_t acknowledged = 1; acknowledged <= 10; ++acknowledged) {
    stage_.Pass(std::chrono::seconds(8));
    peer->Send(DeliverySegment({.kind = DeliveryMessage::Kind::kAcknowledge, .sequence = acknowledged}));
    stage_.Pass();
    const auto completion = Stage::Completion(victim_);
    ASSERT_TRUE(completion.has_value()) << acknowledged;
    EXPECT_EQ(completion->status, IBV_WC_SUCCESS);
  }
}

TEST_F(Patience, ALongAnswerThatComesSlowlyIsProgress) {
  if (!stage_.roce()) return;
  const auto peer = stage_.Connect(victim_, {.delivery = Delivery::kReliable});
  ibv_send_wr read{};
  read.opcode = IBV_WR_RDMA_READ;
  read.wr.rdma.rkey = 0x1234;
  ASSERT_EQ(PostSend(victim_, read, region_, 0, 100), 0);
  stage_.Pass();
  for (uint32_t done = 0; done < 100; ++done) {
    stage_.Pass(std::chrono::seconds(8));
    peer->Send(Tagged(Opcode::kReadResponse, region_.stag.value, region_.address + done, Bytes(1, 0x33), done == 99));
  }
  const auto completion = Stage::Completion(victim_);
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->status, IBV_WC_SUCCESS);
}

// On a reliable stream the answers to earlier Reads go in front of the Terminate. The program hears of the error at
// once all the same.
TEST_F(Patience, ABadRequestBehindAReadThatIsReadSlowlyIsToldAtOnce) {
  const auto peer = stage_.Connect(victim_, {.delivery = stage_.roce() ? Delivery::kReliable : Delivery::kPlain});
  ASSERT_EQ(PostReceive(victim_, region_), 0);
  peer->Send(BigRead(1));
  peer->Send(Tagged(Opcode::kWrite, 0x7777, 0, Bytes(64, 0x77)));
  stage_.Pass(std::chrono::milliseconds(100));
  EXPECT_EQ(victim_.qp.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(victim_.async->events, std::vector{IBV_EVENT_QP_ACCESS_ERR});
  const auto completion = Stage::Completion(victim_);
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(PostReceive(victim_, region_), 0);
  EXPECT_EQ(PostWrite(), 0);
  stage_.Pass(std::chrono::milliseconds(100));
  EXPECT_EQ(Stage::Completion(victim_)->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(Stage::Completion(victim_)->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_FALSE(Stage::Completion(victim_).has_value());
  // Who reads on has the answer, and then the reason.
  size_t payload = 0;
  bool terminated = false;
  for (int rounds = 0; rounds < 1000 && !peer->ended(); ++rounds) {
    peer->Listen(64 * 1024);
    stage_.Pass(std::chrono::milliseconds(10));
    while (const auto segment = peer->Next()) {
      if (ddp::ControlField::Parse((*segment)[0]).tagged) payload += segment->size() - ddp::TaggedHeader::kLength;
      terminated |= !ddp::ControlField::Parse((*segment)[0]).tagged &&
                    ddp::UntaggedHeader::Parse(*segment)->queue == rdmap::kTerminateQueue;
    }
  }
  EXPECT_TRUE(terminated);
  if (stage_.roce()) {
    EXPECT_EQ(payload, bytes_.size());
  }
  EXPECT_EQ(victim_.async->events.size(), 1u) << "once";
}

TEST_F(Patience, WhoReadsABitNowAndThenInFrontOfATerminateIsLeftInTheEnd) {
  const auto peer = stage_.Connect(victim_, {.delivery = stage_.roce() ? Delivery::kReliable : Delivery::kPlain});
  peer->Send(BigRead(1));
  peer->Send(Tagged(Opcode::kWrite, 0x7777, 0, Bytes(64, 0x77)));
  for (int seconds = 0; seconds < 120 && !peer->ended(); ++seconds) {
    peer->Listen(8 * 1024);
    stage_.Pass(std::chrono::seconds(1));
  }
  stage_.Pass(std::chrono::seconds(10));
  peer->Listen();
  EXPECT_TRUE(peer->ended());
}

TEST_F(Patience, APeerThatClosesItsHalfWhileOurTerminateIsBlockedKeepsNoThreadBusy) {
  const auto peer = stage_.Connect(victim_, {.delivery = stage_.roce() ? Delivery::kReliable : Delivery::kPlain});
  peer->Send(BigRead(1));
  peer->Send(Tagged(Opcode::kWrite, 0x7777, 0, Bytes(64, 0x77)));
  peer->ShutdownWrite();
  stage_.Pass(std::chrono::milliseconds(10));
  EXPECT_LT(StepsOfASecond(), 100);
}

// The thread was told to wait for room; the post is what used it.
TEST_F(Patience, APostThatTakesTheRoomThatItsPeerMadeKeepsNoThreadBusy) {
  constexpr uint32_t kBuffer = 256 * 1024;  // of the virtual network
  const auto peer = stage_.Connect(victim_);
  ASSERT_EQ(PostWrite(kBuffer + 64 * 1024), 0);
  stage_.Pass();
  ASSERT_EQ(victim_.qp.qp->state(), IBV_QPS_RTS);
  EXPECT_FALSE(Stage::Completion(victim_).has_value()) << "the socket is not full";
  peer->Listen(kBuffer);  // while the victim's thread has something else to do
  ASSERT_EQ(PostWrite(), 0);
  EXPECT_LT(StepsOfASecond(), 100);
  EXPECT_TRUE(Stage::Completion(victim_).has_value()) << "and both are out";
  EXPECT_TRUE(Stage::Completion(victim_).has_value());
}

// As before, with a destroyed queue pair: the answers do not outlive it.
TEST_F(Patience, AQueuePairCanBeDestroyedWhileItsLastAnswersGoOut) {
  auto program = std::make_unique<Program>(stage_.rnic());
  const RegionInfo region = program->Register(bytes_.data(), bytes_.size());
  const auto peer = stage_.Connect(*program, {.delivery = stage_.roce() ? Delivery::kReliable : Delivery::kPlain});
  peer->Send(
      ReadRequest(1, {ddp::STag(1), ddp::TaggedOffset(0), 8 << 20, region.stag, ddp::TaggedOffset(region.address)}));
  peer->Send(Tagged(Opcode::kWrite, 0x7777, 0, Bytes(64, 0x77)));
  stage_.Pass(std::chrono::milliseconds(10));
  ASSERT_EQ(stage_.rnic().DeregisterMemory(region.stag), 0);
  std::fill(bytes_.begin(), bytes_.end(), 0xee);
  program.reset();
  peer->Listen();
  while (const auto segment = peer->Next()) ASSERT_EQ(std::count(segment->begin(), segment->end(), 0xee), 0);
}

// A reset destroys at the peer what came before and was not read yet.
TEST_F(Patience, AReadThatComesAfterTheDisconnectionLeavesThePeerWhatWasWritten) {
  const auto peer = stage_.Connect(victim_);
  ASSERT_EQ(PostWrite(), 0);
  ASSERT_EQ(victim_.qp.qp->Disconnect(), 0);
  stage_.Pass();
  peer->Send(BigRead(1));  // it has not read so far that it would know
  stage_.Pass();
  peer->ShutdownWrite();
  stage_.Pass();
  peer->Listen();
  EXPECT_EQ(peer->Next(), Tagged(Opcode::kWrite, 0x1234, 0, Bytes(8, 0x11)));
  EXPECT_EQ(peer->Next(), std::nullopt);
  EXPECT_TRUE(peer->ended());
  EXPECT_FALSE(peer->reset());
}

}  // namespace
}  // namespace weft::hostile
