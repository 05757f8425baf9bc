// Requests that name the shared receive queue that they are for.
#include <gtest/gtest.h>

#include <vector>

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

constexpr ddp::STag kSink{0x110};
constexpr uint64_t kBase = 0x10000;
constexpr size_t kSize = 8192;

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
