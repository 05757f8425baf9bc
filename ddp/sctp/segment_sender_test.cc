#include "ddp/sctp/segment_sender.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace weft::ddp::sctp {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Flat(std::span<const iovec> pieces) {
  Bytes all;
  for (const iovec& piece : pieces) {
    const auto* from = static_cast<const uint8_t*>(piece.iov_base);
    all.insert(all.end(), from, from + piece.iov_len);
  }
  return all;
}

bool CopyBytes(uint8_t* to, const uint8_t* from, size_t count) {
  std::memcpy(to, from, count);
  return true;
}

iovec Piece(Bytes& bytes) { return {bytes.data(), bytes.size()}; }

TEST(SegmentSenderTest, TheSsnStandsInFrontOfTheHeader) {
  BufferPool pool;
  SegmentSender sender(pool);
  EXPECT_TRUE(sender.empty());
  Bytes payload = {7, 8, 9};
  const iovec piece = Piece(payload);
  sender.Append(0x1234, Bytes{1, 2}, {&piece, 1}, false);
  EXPECT_EQ(Flat(sender.Front()), (Bytes{0x12, 0x34, 1, 2, 7, 8, 9}));
  EXPECT_EQ(sender.FrontLength(), 7u);
  sender.Pop();
  EXPECT_TRUE(sender.empty());
}

TEST(SegmentSenderTest, LongPayloadIsReferencedAndShortOrVolatilePayloadIsCopied) {
  BufferPool pool;
  SegmentSender sender(pool);
  Bytes payload(2000, 1), brief(100, 1);
  const iovec piece = Piece(payload), short_piece = Piece(brief);
  sender.Append(1, Bytes(14), {&piece, 1}, false);
  sender.Append(2, Bytes(14), {&piece, 1}, true);
  sender.Append(3, Bytes(14), {&short_piece, 1}, false);
  payload.assign(2000, 2);
  brief.assign(100, 2);
  ASSERT_EQ(sender.Front().size(), 2u);
  EXPECT_EQ(sender.Front()[1].iov_base, payload.data());
  EXPECT_EQ(Flat(sender.Front()).back(), 2);
  sender.Pop();
  EXPECT_EQ(sender.Front().size(), 1u);
  EXPECT_EQ(Flat(sender.Front()).back(), 1);
  sender.Pop();
  EXPECT_EQ(Flat(sender.Front()).back(), 1);
}

TEST(SegmentSenderTest, WhatGoesAwayIsTakenOverAsItWas) {
  BufferPool pool;
  SegmentSender sender(pool);
  Bytes gone(3000, 1), stays(3000, 1);
  const iovec pieces[] = {Piece(stays), Piece(gone)};
  sender.Append(1, Bytes(14), pieces, false);
  sender.Append(2, Bytes(14), {&pieces[1], 1}, false);
  sender.TakeOver(gone.data() + 2999, 1, CopyBytes);
  gone.assign(3000, 2);
  stays.assign(3000, 3);
  Bytes expected(16 + 6000);
  std::fill(expected.begin() + 16, expected.begin() + 3016, 3);
  std::fill(expected.begin() + 3016, expected.end(), 1);
  expected[1] = 1;
  EXPECT_EQ(Flat(sender.Front()), expected);
  sender.Pop();
  EXPECT_EQ(Flat(sender.Front()).back(), 1);
  sender.TakeOver(stays.data(), 3000, CopyBytes);  // of which nothing waits
  EXPECT_EQ(Flat(sender.Front()).size(), 3016u);
}

TEST(SegmentSenderTest, AnEmptySenderHasRoomForEveryUlpdu) {
  BufferPool pool;
  SegmentSender sender(pool);
  Bytes payload(65535 - 72);
  for (size_t pieces = 1; pieces <= 64; ++pieces) {
    std::vector<iovec> list;
    size_t at = 0;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t count = i + 1 == pieces ? payload.size() - at : payload.size() / pieces;
      list.push_back({payload.data() + at, count});
      at += count;
    }
    ASSERT_TRUE(sender.HasRoom(payload.size(), pieces));
    sender.Append(0, Bytes(72), list, pieces % 2 == 0);
    EXPECT_EQ(sender.FrontLength(), 65537u);
    sender.Pop();
  }
}

TEST(SegmentSenderTest, ItIsFullInTheEndAndHasRoomAgain) {
  BufferPool pool;
  SegmentSender sender(pool);
  Bytes payload(60000);
  const iovec piece = Piece(payload);
  size_t appended = 0;
  for (; sender.HasRoom(payload.size(), 1); ++appended) sender.Append(0, Bytes(14), {&piece, 1}, true);
  EXPECT_EQ(appended, 2u);
  sender.Pop();
  EXPECT_TRUE(sender.HasRoom(50000, 1));
  while (!sender.empty()) sender.Pop();
  for (appended = 0; sender.HasRoom(0, 0); ++appended) sender.Append(0, Bytes(14), {}, false);
  EXPECT_EQ(appended, SegmentSender::kMostMessages);
}

TEST(SegmentSenderTest, RandomWorkComesOutInOrderAndWhole) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    BufferPool pool;
    SegmentSender sender(pool);
    std::deque<Bytes> expected;
    std::deque<Bytes> memory;  // of payload
    uint16_t ssn = 65000;
    for (int step = 0; step < 3000; ++step) {
      const size_t most = random() % 4 == 0 ? 40000 : 1400;
      std::vector<iovec> list;
      size_t length = 0;
      Bytes header(14 + random() % 20, static_cast<uint8_t>(random()));
      Bytes whole = {static_cast<uint8_t>(ssn >> 8), static_cast<uint8_t>(ssn)};
      whole.insert(whole.end(), header.begin(), header.end());
      for (size_t pieces = random() % 4; pieces != 0; --pieces) {
        memory.emplace_back(random() % (most / 4), static_cast<uint8_t>(random()));
        list.push_back(Piece(memory.back()));
        length += memory.back().size();
        whole.insert(whole.end(), memory.back().begin(), memory.back().end());
      }
      if (random() % 2 == 0 && sender.HasRoom(length, list.size())) {
        sender.Append(ssn++, header, list, random() % 2 == 0);
        expected.push_back(std::move(whole));
      } else if (!expected.empty()) {
        if (random() % 8 == 0) {
          Bytes& going = memory[random() % memory.size()];
          sender.TakeOver(going.data(), going.size(), CopyBytes);
          std::fill(going.begin(), going.end(), 0xee);
          going = Bytes();
        }
        ASSERT_EQ(Flat(sender.Front()), expected.front());
        ASSERT_EQ(sender.FrontLength(), expected.front().size());
        sender.Pop();
        expected.pop_front();
      }
    }
  }
}

}  // namespace
}  // namespace weft::ddp::sctp
