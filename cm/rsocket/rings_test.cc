#include "cm/rsocket/rings.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::rsocket {
namespace {

TEST(SendRing, WrapsIntoTwoPieces) {
  SendRing ring(10);
  EXPECT_EQ(ring.Take(7).count(), 1);
  EXPECT_EQ(ring.free(), 3u);
  ring.GiveBack(7);
  const RingRange range = ring.Take(5);
  EXPECT_EQ(range.count(), 2);
  EXPECT_EQ(range.pieces[0].offset, 7u);
  EXPECT_EQ(range.pieces[0].length, 3u);
  EXPECT_EQ(range.pieces[1].offset, 0u);
  EXPECT_EQ(range.pieces[1].length, 2u);
}

TEST(SendRing, EndingAtTheEndIsOnePiece) {
  SendRing ring(8);
  EXPECT_EQ(ring.Take(8).count(), 1);
  ring.GiveBack(8);
  EXPECT_EQ(ring.Take(1).pieces[0].offset, 0u);
}

TEST(ReceiveRing, RefusesMoreThanWasGranted) {
  ReceiveRing ring(100, 8);
  EXPECT_FALSE(ring.OnMessage(51));
  EXPECT_TRUE(ring.OnMessage(50));
  EXPECT_FALSE(ring.OnMessage(1));
  ASSERT_TRUE(ring.can_grant());
  EXPECT_EQ(ring.TakeGrant(), 50u);
  EXPECT_FALSE(ring.can_grant());
  EXPECT_TRUE(ring.OnMessage(1));
}

TEST(ReceiveRing, RefusesMoreMessagesThanItHasRoomFor) {
  ReceiveRing ring(100, 2);
  EXPECT_TRUE(ring.OnMessage(1));
  EXPECT_TRUE(ring.OnMessage(1));
  EXPECT_FALSE(ring.OnMessage(1));
  ring.Consume(1);
  EXPECT_EQ(ring.read_messages(), 1);
  EXPECT_TRUE(ring.OnMessage(1));
}

TEST(ReceiveRing, CountsAMessageOnceAllOfItIsRead) {
  ReceiveRing ring(100, 8);
  ring.OnMessage(10);
  ring.OnMessage(5);
  ring.Consume(9);
  EXPECT_EQ(ring.read_messages(), 0);
  ring.Consume(6);
  EXPECT_EQ(ring.read_messages(), 2);
  EXPECT_EQ(ring.readable(), 0u);
}

TEST(ReceiveRing, AnEmptyMessageIsReadAtOnce) {
  ReceiveRing ring(100, 1);
  EXPECT_TRUE(ring.OnMessage(0));
  EXPECT_EQ(ring.read_messages(), 1);
  EXPECT_EQ(ring.readable(), 0u);
}

// A sender that fills every grant, a reader of random amounts: bytes come out in order.
TEST(ReceiveRing, KeepsTheOrderOverManyRounds) {
  std::mt19937 random(7);
  constexpr uint32_t kSize = 64;
  std::vector<uint8_t> memory(kSize);
  ReceiveRing ring(kSize, 16);
  struct Grant {
    uint32_t offset, left;
  };
  std::vector<Grant> grants = {{0, kSize / 2}};
  uint8_t sent = 0, read = 0;
  uint32_t total = 0;
  while (total < 20000) {
    while (ring.can_grant()) grants.push_back({ring.TakeGrant(), kSize / 2});
    if (!grants.empty() && random() % 2 == 0) {
      const uint32_t length = 1 + random() % grants[0].left;
      if (ring.OnMessage(length)) {
        for (uint32_t i = 0; i < length; ++i) memory[grants[0].offset + i] = sent++;
        grants[0].offset += length;
        grants[0].left -= length;
        if (grants[0].left == 0) grants.erase(grants.begin());
      }
    } else if (ring.readable() > 0) {
      const uint32_t length = 1 + random() % ring.readable();
      const RingRange range = ring.Peek(0, length);
      for (const auto& piece : range.pieces) {
        for (uint32_t i = 0; i < piece.length; ++i) ASSERT_EQ(memory[piece.offset + i], read++);
      }
      ring.Consume(length);
      total += length;
    }
  }
}

}  // namespace
}  // namespace weft::rsocket
