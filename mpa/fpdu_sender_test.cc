#include "mpa/fpdu_sender.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "base/program_memory.h"
#include "mpa/fpdu_layout.h"
#include "mpa/reference.h"

namespace weft::mpa {
namespace {

Bytes MakeBytes(size_t length, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(length);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

iovec Piece(const Bytes& bytes) { return {const_cast<uint8_t*>(bytes.data()), bytes.size()}; }

size_t PendingLength(FpduSender& sender) {
  size_t length = 0;
  for (const iovec& piece : sender.Pending()) length += piece.iov_len;
  return length;
}

// Takes up to `count` bytes, as a socket would.
void Drain(FpduSender& sender, size_t count, Bytes& into) {
  size_t taken = 0;
  for (const iovec& piece : sender.Pending()) {
    const size_t part = std::min(piece.iov_len, count - taken);
    const uint8_t* from = static_cast<const uint8_t*>(piece.iov_base);
    into.insert(into.end(), from, from + part);
    taken += part;
  }
  sender.Consume(taken);
}

TEST(FpduSenderTest, FramesAsTheExampleOfTheRfc) {
  // RFC 5044 section 4.4, figure 5: the first FPDU of a stream with markers; the header is DDP's, the payload 24 zeros.
  const Bytes header = {0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  const Bytes payload(24, 0);
  BufferPool pool;
  FpduSender sender({.crc = true, .markers = true}, pool);
  const iovec piece = Piece(payload);
  sender.Append(header, {&piece, 1}, false);
  Bytes wire;
  Drain(sender, ~size_t{0}, wire);
  Bytes expected = {0, 0, 0, 0, 0x00, 0x2a};
  expected.insert(expected.end(), header.begin(), header.end());
  expected.insert(expected.end(), 24, 0);
  for (uint8_t byte : {0x52, 0x23, 0x99, 0x83}) expected.push_back(byte);
  EXPECT_EQ(wire, expected);
}

class FpduSenderModesTest : public testing::TestWithParam<int> {
 protected:
  bool crc() const { return GetParam() & 1; }
  bool markers() const { return GetParam() & 2; }
  FpduSender::Options options() const { return {.crc = crc(), .markers = markers()}; }
};

INSTANTIATE_TEST_SUITE_P(Modes, FpduSenderModesTest, testing::Range(0, 4), [](const testing::TestParamInfo<int>& info) {
  return std::string(info.param & 1 ? "Crc" : "NoCrc") + (info.param & 2 ? "Markers" : "NoMarkers");
});

TEST_P(FpduSenderModesTest, WritesWhatTheReferenceWritesForEveryBoundaryLength) {
  BufferPool pool;
  FpduSender sender(options(), pool);
  Bytes wire, expected;
  for (size_t header_length : {1u, 14u, 18u, 30u, 72u}) {
    for (size_t payload_length :
         {0u,   1u,   2u,   3u,   4u,   5u,   64u,  470u,  471u,  472u,  493u,  494u,  495u,  507u,
          508u, 509u, 510u, 511u, 512u, 513u, 514u, 1023u, 1024u, 1025u, 1442u, 4096u, 64696u}) {
      const Bytes header = MakeBytes(header_length, 1), payload = MakeBytes(payload_length, 2);
      const iovec piece = Piece(payload);
      ASSERT_TRUE(sender.HasRoom(payload_length, 1));
      sender.Append(header, {&piece, 1}, payload_length % 2 == 0);
      Bytes ulpdu = header;
      ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
      ReferenceEncode(expected, ulpdu, crc(), markers());
      EXPECT_EQ(sender.appended(), expected.size());
      Drain(sender, ~size_t{0}, wire);
      ASSERT_EQ(wire.size(), expected.size());
      ASSERT_TRUE(wire == expected) << header_length << "+" << payload_length;
      ASSERT_TRUE(sender.empty());
      ASSERT_EQ(sender.consumed(), sender.appended());
    }
  }
}

TEST_P(FpduSenderModesTest, PutsMarkersAtEveryPhase) {
  BufferPool pool;
  FpduSender sender(options(), pool);
  Bytes wire, expected;
  const Bytes header = MakeBytes(18, 3), payload = MakeBytes(700, 4);
  std::set<uint64_t> phases;
  for (size_t i = 0; i < 3000; ++i) {
    phases.insert(sender.appended() % 512);
    const iovec piece = {const_cast<uint8_t*>(payload.data()), 8 + i * 52 % 690};
    sender.Append(header, {&piece, 1}, false);
    Bytes ulpdu = header;
    ulpdu.insert(ulpdu.end(), payload.begin(), payload.begin() + static_cast<long>(piece.iov_len));
    ReferenceEncode(expected, ulpdu, crc(), markers());
    Drain(sender, ~size_t{0}, wire);
  }
  // Every multiple of four, but without markers all 128, with them not 4: no FPDU ends in a marker.
  EXPECT_EQ(phases.size(), markers() ? 127u : 128u);
  EXPECT_TRUE(wire == expected);
}

TEST_P(FpduSenderModesTest, KeepsOrderUnderRandomAppendsAndPartialWrites) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    BufferPool pool;
    FpduSender sender(options(), pool);
    Bytes wire, expected;
    std::deque<Bytes> memory;  // referenced payload has to stay
    for (int step = 0; step < 150; ++step) {
      if (random() % 3 != 0) {
        const size_t most = random() % 4 == 0 ? 60000 : random() % 2 == 0 ? 3000 : 100;
        const size_t count = random() % 6;
        const bool is_volatile = random() % 4 == 0;
        std::vector<iovec> pieces;
        Bytes ulpdu = MakeBytes(1 + random() % 72, random());
        const Bytes header = ulpdu;
        size_t total = 0;
        std::vector<Bytes*> kept;
        for (size_t i = 0; i < count; ++i) {
          memory.push_back(MakeBytes(random() % (most / count), random()));
          kept.push_back(&memory.back());
          pieces.push_back(Piece(memory.back()));
          total += memory.back().size();
          ulpdu.insert(ulpdu.end(), memory.back().begin(), memory.back().end());
        }
        if (!sender.HasRoom(total, count)) {
          ASSERT_FALSE(sender.empty());
          continue;
        }
        sender.Append(header, pieces, is_volatile);
        if (is_volatile) {
          for (Bytes* bytes : kept) std::fill(bytes->begin(), bytes->end(), 0xee);
        }
        ReferenceEncode(expected, ulpdu, crc(), markers());
        ASSERT_EQ(sender.appended(), expected.size());
      } else {
        Drain(sender, random() % (random() % 2 == 0 ? 500 : 100000), wire);
        ASSERT_EQ(sender.consumed(), wire.size());
      }
      ASSERT_LE(sender.Pending().size(), 64u);
      ASSERT_EQ(PendingLength(sender), sender.appended() - sender.consumed());
    }
    Drain(sender, ~size_t{0}, wire);
    ASSERT_TRUE(wire == expected);
    ASSERT_TRUE(sender.empty());
  }
}

TEST_P(FpduSenderModesTest, HasRoomForAnyUlpduWhenEmpty) {
  BufferPool pool;
  FpduSender sender(options(), pool);
  for (size_t pieces : {0u, 1u, 2u, 30u, 32u, 33u, 64u, 1000u}) {
    for (size_t length : {0u, 1u, 512u, 513u, 33000u, 64768u, 65535u}) EXPECT_TRUE(sender.HasRoom(length, pieces));
  }
}

TEST_P(FpduSenderModesTest, UsesStagingRoundAndRoundAsSoonAsThereIsRoom) {
  BufferPool pool;
  FpduSender sender(options(), pool);
  Bytes wire, expected;
  const Bytes header = MakeBytes(72, 5), payload = MakeBytes(20002, 6);
  Bytes ulpdu = header;
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  const iovec piece = Piece(payload);
  size_t appended = 0, drained = 0;
  while (appended < 40) {
    if (sender.HasRoom(payload.size(), 1)) {
      sender.Append(header, {&piece, 1}, true);
      ReferenceEncode(expected, ulpdu, crc(), markers());
      ++appended;
      drained = 0;
    } else {
      // Room for one more comes when the first two are out, at the latest.
      ASSERT_LT(drained, 45000u);
      const size_t step = appended % 2 == 0 ? 4 : 45000;
      Drain(sender, step, wire);
      drained += step;
    }
  }
  Drain(sender, ~size_t{0}, wire);
  EXPECT_TRUE(wire == expected);
}

TEST_P(FpduSenderModesTest, TakesOverWhatLiesInMemoryThatGoesAwayAndLeavesTheRestWhereItIs) {
  BufferPool pool;
  FpduSender sender(options(), pool);
  const Bytes header = MakeBytes(14, 7);
  Bytes going = MakeBytes(30000, 8), staying = MakeBytes(30000, 9), wire, expected;
  for (const Bytes* payload : {&going, &staying, &going}) {
    const iovec piece = Piece(*payload);
    sender.Append(header, {&piece, 1}, false);
    Bytes ulpdu = header;
    ulpdu.insert(ulpdu.end(), payload->begin(), payload->end());
    ReferenceEncode(expected, ulpdu, crc(), markers());
  }
  Drain(sender, 1000, wire);  // a frame that is partly out
  const auto copy = [](uint8_t* to, const uint8_t* from, size_t count) {
    std::memcpy(to, from, count);
    return true;
  };
  sender.TakeOver(going.data() + 5000, 100, copy);  // a part of it is enough
  const auto refers = [&sender](const Bytes& bytes) {
    for (const iovec& piece : sender.Pending()) {
      if (piece.iov_base >= bytes.data() && piece.iov_base < bytes.data() + bytes.size()) return true;
    }
    return false;
  };
  EXPECT_FALSE(refers(going));
  EXPECT_EQ(refers(staying), !crc() && !markers());
  std::fill(going.begin(), going.end(), 0xee);
  sender.TakeOver(going.data(), going.size(), copy);
  while (!sender.empty()) Drain(sender, 7000, wire);
  EXPECT_TRUE(wire == expected);
}

// A thread of Weft copies the payload of many FPDUs at once, when they are to be written.
TEST_P(FpduSenderModesTest, AThreadOfWeftMakesTheSameBytes) {
  BufferPool pool;
  const Bytes memory = MakeBytes(100'000, 4);
  const auto run = [&](Bytes* wire) {
    std::mt19937 random(5);
    FpduSender sender({.crc = crc(), .markers = markers()}, pool);
    for (int i = 0; i < 400; ++i) {
      std::vector<iovec> pieces(random() % 6 == 0 ? random() % 40 : 1);
      size_t total = 0;
      for (iovec& piece : pieces) {
        const size_t length = random() % (pieces.size() == 1 && random() % 4 == 0 ? 60'000 : 900);
        piece = {const_cast<uint8_t*>(memory.data()) + random() % 1000, length};
        total += length;
      }
      while (!sender.HasRoom(total, pieces.size())) Drain(sender, 20'000, *wire);
      sender.Append(MakeBytes(14, static_cast<uint8_t>(i)), pieces, false);
      if (random() % 50 == 0) Drain(sender, 7000, *wire);
    }
    while (!sender.empty()) Drain(sender, 7000, *wire);
    EXPECT_FALSE(sender.payload_gone());
  };
  Bytes expected, wire;
  run(&expected);
  std::thread ours([&] {
    SetThreadOfOurs();
    run(&wire);
  });
  ours.join();
  EXPECT_TRUE(wire == expected);
}

TEST_P(FpduSenderModesTest, WhatAThreadOfWeftAppendedIsSentAsItWasWhenItsMemoryGoes) {
  BufferPool pool;
  FpduSender sender({.crc = crc(), .markers = markers()}, pool), plain({.crc = crc(), .markers = markers()}, pool);
  Bytes payload = MakeBytes(3000, 6);
  const iovec piece = Piece(payload);
  const Bytes header(14, 'h');
  Bytes expected, wire;
  plain.Append(header, {&piece, 1}, true);
  while (!plain.empty()) Drain(plain, 7000, expected);
  std::thread ours([&] {
    SetThreadOfOurs();
    sender.Append(header, {&piece, 1}, false);
  });
  ours.join();
  sender.TakeOver(payload.data(), payload.size(), [](uint8_t* to, const uint8_t* from, size_t count) {
    std::memcpy(to, from, count);
    return true;
  });
  std::fill(payload.begin(), payload.end(), 0xee);
  while (!sender.empty()) Drain(sender, 7000, wire);
  EXPECT_TRUE(wire == expected);
}

TEST_P(FpduSenderModesTest, SaysThatPayloadIsGone) {
  BufferPool pool(1);
  FpduSender sender({.crc = crc(), .markers = markers()}, pool);
  const iovec piece{reinterpret_cast<void*>(8), 3000};
  const Bytes header(14, 'h');
  std::thread ours([&] {
    SetThreadOfOurs();
    sender.Append(header, {&piece, 1}, false);
  });
  ours.join();
  if (!sender.payload_gone()) sender.TakeOver(nullptr, SIZE_MAX, [](uint8_t*, const uint8_t*, size_t) { return false; });  // it lies where it lay
  EXPECT_TRUE(sender.payload_gone());
  EXPECT_FALSE(sender.HasRoom(1, 1)) << "nothing goes out behind it";
}

TEST_P(FpduSenderModesTest, GivesItsBlockBackAfterTheLastByte) {
  BufferPool pool(1);
  uint8_t* const block = pool.Take().data();
  FpduSender sender(options(), pool);
  sender.Append(MakeBytes(18, 7), {}, false);
  sender.Consume(PendingLength(sender) - 1);
  EXPECT_NE(pool.Take().data(), block);
  // The block taken and returned by the line above is the one that the pool keeps from here on.
  const BufferPool::Lease keep = pool.Take();
  sender.Consume(1);
  EXPECT_EQ(pool.Take().data(), block);
}

TEST(FpduSenderTest, MergesABatchOfShortFpdusIntoOnePiece) {
  BufferPool pool;
  for (bool crc : {false, true}) {
    FpduSender sender({.crc = crc}, pool);
    const Bytes header = MakeBytes(14, 8), payload = MakeBytes(64, 9);
    const iovec piece = Piece(payload);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(sender.HasRoom(64, 1));
      sender.Append(header, {&piece, 1}, false);
    }
    EXPECT_EQ(sender.Pending().size(), 1u);
    EXPECT_EQ(PendingLength(sender), 1000 * FpduLength(78));
  }
}

TEST(FpduSenderTest, ReferencesALongPayloadAndMergesWhatIsBetween) {
  BufferPool pool;
  FpduSender sender({.crc = false}, pool);
  const Bytes header = MakeBytes(14, 10), payload = MakeBytes(60000, 11);
  const iovec piece = Piece(payload);
  for (int i = 0; i < 3; ++i) sender.Append(header, {&piece, 1}, false);
  const std::span<const iovec> pending = sender.Pending();
  ASSERT_EQ(pending.size(), 7u);
  EXPECT_EQ(pending[1].iov_base, payload.data());
  EXPECT_EQ(pending[1].iov_len, payload.size());
  EXPECT_EQ(pending[2].iov_len, PadLength(60014) + 4 + 2 + 14);
}

TEST(FpduSenderTest, RunsOutOfPiecesBeforeItOverflows) {
  BufferPool pool;
  FpduSender sender({.crc = false}, pool);
  const Bytes header = MakeBytes(14, 12), payload = MakeBytes(1000, 13);
  const iovec piece = Piece(payload);
  size_t appended = 0;
  for (; sender.HasRoom(1000, 1); ++appended) sender.Append(header, {&piece, 1}, false);
  EXPECT_GE(appended, 30u);
  EXPECT_LE(sender.Pending().size(), 64u);
}

TEST(FpduSenderTest, KeepsMulpduWithinTheBoundsOfTheRfc) {
  BufferPool pool;
  EXPECT_EQ(FpduSender({.max_ulpdu = 65535}, pool).max_ulpdu(), 64768u);
  EXPECT_EQ(FpduSender({.max_ulpdu = 1442}, pool).max_ulpdu(), 1442u);
  EXPECT_EQ(FpduSender({.max_ulpdu = 0}, pool).max_ulpdu(), 128u);
}

}  // namespace
}  // namespace weft::mpa
