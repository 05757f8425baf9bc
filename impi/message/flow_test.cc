#include "impi/message/flow.h"

#include <gtest/gtest.h>

namespace weft::impi {
namespace {

constexpr uint32_t kDataLength = 1000;  // bytes

TEST(ImpiFlow, AllPacketsCountButProtoAckAndFini) {
  for (uint32_t type = 0; type <= static_cast<uint32_t>(kLastPacketType); ++type) {
    EXPECT_EQ(Counts(static_cast<PacketType>(type)), type != 2 && type != 7) << type;
  }
}

TEST(ImpiFlow, ASenderStopsAtHighWaterAndGoesOnWithProtoAck) {
  FlowOut flow({.ack_mark = 2, .high_water = 5});
  EXPECT_FALSE(flow.OnAck()) << "nothing was sent";
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(flow.is_full());
    flow.Count(false);
  }
  EXPECT_TRUE(flow.is_full());
  EXPECT_TRUE(flow.OnAck());
  EXPECT_EQ(flow.sent(), 3u);
  EXPECT_TRUE(flow.OnAck());
  EXPECT_FALSE(flow.OnAck()) << "it would acknowledge two, of which one was sent";
  EXPECT_EQ(flow.sent(), 1u);
}

TEST(ImpiFlow, FirstPacketsLeaveRoomForThoseThatThePeerWaitsFor) {
  for (uint32_t ack_mark = 1; ack_mark <= 5; ++ack_mark) {
    for (uint32_t high_water = ack_mark; high_water <= 12; ++high_water) {
      FlowOut flow({.ack_mark = ack_mark, .high_water = high_water});
      uint32_t firsts = 0;
      for (; flow.may_send_first(); ++firsts) flow.Count(true);
      EXPECT_GE(firsts, ack_mark) << "otherwise no PROTOACK would be due, and no more could be sent";
      if (high_water < 2 * ack_mark) continue;
      EXPECT_EQ(firsts, high_water - ack_mark) << "otherwise a peer that holds all of them owes no PROTOACK when the window is full";
      for (uint32_t i = 0; i < ack_mark; ++i) flow.Count(false);
      EXPECT_TRUE(flow.is_full());
      EXPECT_TRUE(flow.OnAck());
      EXPECT_FALSE(flow.may_send_first()) << "the peer may have received the others only";
      EXPECT_FALSE(flow.is_full());
    }
  }
}

TEST(ImpiFlow, ProtoAckIsDueForEveryAckMarkPackets) {
  FlowIn flow({.ack_mark = 3, .high_water = 4}, kDataLength);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(flow.owes_ack());
      flow.Count();
    }
    ASSERT_TRUE(flow.owes_ack());
    flow.TakeAck();
    EXPECT_EQ(flow.unacknowledged(), 0u);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(flow.is_full());
    flow.Count();
  }
  EXPECT_TRUE(flow.is_full()) << "until PROTOACK is taken";
  flow.TakeAck();
  EXPECT_FALSE(flow.is_full());
}

TEST(ImpiFlow, FullPacketsThatAreHeldAreNotAcknowledged) {
  FlowIn flow({.ack_mark = 1, .high_water = 3}, kDataLength);
  const uint64_t cost = flow.CostOf(kDataLength);
  EXPECT_EQ(cost, kDataLength);
  for (int i = 0; i < 3; ++i) {
    flow.Count();
    flow.Hold(cost);
    EXPECT_FALSE(flow.owes_ack());
  }
  flow.Unhold(cost);
  ASSERT_TRUE(flow.owes_ack());
  flow.TakeAck();
  EXPECT_FALSE(flow.owes_ack());
}

// The number of messages that a peer can leave here is bounded, and what they take, too.
uint64_t HeldUntilFull(FlowIn& flow, uint32_t length, uint64_t most) {
  uint64_t messages = 0;
  for (; messages < most && !flow.is_full(); ++messages) {
    flow.Count();
    flow.Hold(flow.CostOf(length));
    while (flow.owes_ack()) flow.TakeAck();
  }
  return messages;
}

TEST(ImpiFlow, WhatIsHeldIsBoundedForEveryLengthOfMessages) {
  for (const uint32_t ack_mark : {1u, 2u, 5u}) {
    for (const uint64_t store : {0, 1, 2500}) {
      for (const uint32_t length : {0u, 1u, 743u, 744u, 745u, 999u, 1000u}) {
        FlowIn flow({.ack_mark = ack_mark, .high_water = 5, .store = store}, kDataLength);
        const uint64_t messages = HeldUntilFull(flow, length, 1000000);
        EXPECT_LT(messages, 1000000u);
        EXPECT_GE(messages, 5u) << "high_water packets are always accepted";
        EXPECT_LE(flow.held(), 5 * kDataLength + store);
        EXPECT_LE(messages * length, 5 * kDataLength + store);
      }
    }
  }
}

TEST(ImpiFlow, ShortMessagesThatAreHeldTakeLessThanAPacket) {
  FlowIn flow({.ack_mark = 10, .high_water = 20}, 65536);
  EXPECT_GT(HeldUntilFull(flow, 4, 1000000), 2000u);
  FlowIn tiny({.ack_mark = 1, .high_water = 3}, 1);
  EXPECT_EQ(HeldUntilFull(tiny, 1, 1000000), 3u) << "a packet's share is the most that one is charged with";
}

TEST(ImpiFlow, StoreIsForMessagesBeyondHighWater) {
  FlowIn flow({.ack_mark = 1, .high_water = 2, .store = 5000}, kDataLength);
  EXPECT_EQ(HeldUntilFull(flow, kDataLength, 100), 7u);
  FlowIn endless({.ack_mark = 1, .high_water = 2, .store = ~uint64_t{0}}, kDataLength);
  EXPECT_EQ(HeldUntilFull(endless, kDataLength, 10000), 10000u);
}

}  // namespace
}  // namespace weft::impi
