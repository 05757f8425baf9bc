#include "mpa/fpdu_receiver.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "base/crc32c.h"
#include "base/program_memory.h"
#include "mpa/reference.h"

namespace weft::mpa {
namespace {

Bytes MakeUlpdu(size_t length, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes ulpdu(length);
  for (uint8_t& byte : ulpdu) byte = static_cast<uint8_t>(random());
  return ulpdu;
}

// The four modes of a stream: without and with CRC, without and with markers.
class FpduReceiverTest : public testing::TestWithParam<int> {
 protected:
  FpduReceiver::Options options(size_t max_ulpdu = 65535) const {
    return {.crc = (GetParam() & 1) != 0, .markers = (GetParam() & 2) != 0, .max_ulpdu = max_ulpdu};
  }
  bool whole() const { return GetParam() != 0; }

  void Encode(const Bytes& ulpdu) {
    ReferenceEncode(stream_, ulpdu, options().crc, options().markers);
    sent_.push_back(ulpdu);
  }

  Bytes stream_;
  std::vector<Bytes> sent_;
  BufferPool pool_;
};

INSTANTIATE_TEST_SUITE_P(Modes, FpduReceiverTest, testing::Range(0, 4), [](const testing::TestParamInfo<int>& info) {
  return std::string(info.param & 1 ? "Crc" : "NoCrc") + (info.param & 2 ? "Markers" : "NoMarkers");
});

TEST_P(FpduReceiverTest, TakesUlpdusOfEveryBoundaryLength) {
  for (size_t length :
       {1,   2,   3,    4,    5,    6,    7,    8,    69,   70,   71,    72,    73,    74,    75,   76,  127,
        128, 497, 498,  499,  500,  501,  502,  503,  504,  505,  506,   507,   508,   509,   510,  511, 512,
        513, 514, 1023, 1024, 1025, 4095, 4096, 8191, 8192, 8193, 32767, 32768, 64768, 65534, 65535}) {
    Encode(MakeUlpdu(length, static_cast<uint32_t>(length)));
  }
  for (size_t step : {0u, 1u, 7u, 1000u, 1448u, 65536u}) {
    RecordingSink sink;
    FpduReceiver receiver(options(), pool_, sink);
    EXPECT_TRUE(Feed(receiver, stream_, step));
    EXPECT_EQ(sink.ulpdus(), sent_) << step;
    EXPECT_TRUE(receiver.at_boundary());
  }
}

TEST_P(FpduReceiverTest, TakesALoneUlpduOf65535AtEveryMarkerPhase) {
  for (size_t phase = 0; phase < 512; phase += 60) {
    stream_.clear();
    sent_.clear();
    if (phase != 0) Encode(MakeUlpdu(phase, 1));
    Encode(MakeUlpdu(65535, static_cast<uint32_t>(phase)));
    RecordingSink sink;
    FpduReceiver receiver(options(), pool_, sink);
    EXPECT_TRUE(Feed(receiver, stream_, 9000));
    EXPECT_EQ(sink.ulpdus(), sent_);
  }
}

TEST_P(FpduReceiverTest, FindsTheSameUlpdusAtEverySplitPoint) {
  for (size_t length : {1, 14, 18, 42, 80, 600, 3, 75}) Encode(MakeUlpdu(length, static_cast<uint32_t>(length)));
  for (size_t split = 0; split <= stream_.size(); ++split) {
    RecordingSink sink;
    FpduReceiver receiver(options(), pool_, sink);
    const ByteSpan all(stream_);
    ASSERT_TRUE(Feed(receiver, all.first(split)));
    const ReferenceDecoded front = ReferenceDecode(all.first(split), options());
    ASSERT_EQ(receiver.at_boundary(), front.at_boundary) << split;
    ASSERT_EQ(sink.ulpdus(), front.ulpdus) << split;
    ASSERT_TRUE(Feed(receiver, all.subspan(split)));
    ASSERT_EQ(sink.ulpdus(), sent_) << split;
    ASSERT_TRUE(receiver.at_boundary());
  }
}

TEST_P(FpduReceiverTest, TakesRandomStreamsInRandomSteps) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    stream_.clear();
    sent_.clear();
    for (int i = 0; i < 40; ++i) {
      const size_t most = random() % 8 == 0 ? 20000 : random() % 2 == 0 ? 1500 : 100;
      Encode(MakeUlpdu(1 + random() % most, random()));
    }
    RecordingSink sink;
    sink.set_max_pieces(1 + random() % 100);
    FpduReceiver receiver(options(), pool_, sink);
    const size_t most = random() % 2 == 0 ? 100 : 20000;
    for (size_t at = 0; at < stream_.size();) {
      const size_t step = std::min<size_t>(stream_.size() - at, random() % most);
      ASSERT_TRUE(Feed(receiver, ByteSpan(stream_).subspan(at, step)));
      at += step;
    }
    ASSERT_EQ(sink.ulpdus(), sent_);
    ASSERT_TRUE(receiver.at_boundary());
  }
}

TEST_P(FpduReceiverTest, RefusesALengthOfZero) {
  Encode(MakeUlpdu(10, 1));
  Encode({});
  RecordingSink sink;
  FpduReceiver receiver(options(), pool_, sink);
  EXPECT_FALSE(Feed(receiver, stream_));
  EXPECT_EQ(receiver.error(), FpduError::kBadLength);
  EXPECT_EQ(sink.ulpdus().size(), 1u);
}

TEST_P(FpduReceiverTest, RefusesALengthBeyondTheAgreedOneAsSoonAsItIsSeen) {
  Encode(MakeUlpdu(1000, 1));
  const size_t second = stream_.size();
  Encode(MakeUlpdu(1001, 2));
  RecordingSink sink;
  FpduReceiver receiver(options(1000), pool_, sink);
  EXPECT_TRUE(Feed(receiver, ByteSpan(stream_).first(second + 1)));
  EXPECT_FALSE(Feed(receiver, ByteSpan(stream_).subspan(second + 1, 1)));
  EXPECT_EQ(receiver.error(), FpduError::kBadLength);
  EXPECT_EQ(sink.ulpdus().size(), 1u);
}

TEST_P(FpduReceiverTest, StaysStoppedAndLeavesTheSinkAlone) {
  Encode({});
  const Bytes bad = stream_;
  RecordingSink sink;
  FpduReceiver receiver(options(), pool_, sink);
  EXPECT_FALSE(Feed(receiver, bad));
  stream_.clear();
  Encode(MakeUlpdu(20, 1));
  EXPECT_FALSE(Feed(receiver, stream_));
  EXPECT_FALSE(receiver.Commit(0));
  EXPECT_EQ(receiver.error(), FpduError::kBadLength);
  EXPECT_TRUE(sink.ulpdus().empty());
}

TEST_P(FpduReceiverTest, StopsWhereTheSinkSaysSo) {
  for (size_t length : {30, 40, 50}) Encode(MakeUlpdu(length, 1));
  for (size_t refuse_at = 0; refuse_at < 6; ++refuse_at) {
    RecordingSink sink(refuse_at);
    FpduReceiver receiver(options(), pool_, sink);
    EXPECT_FALSE(Feed(receiver, stream_));
    EXPECT_EQ(receiver.error(), FpduError::kNone);
    EXPECT_EQ(sink.ulpdus().size(), refuse_at / 2);
  }
}

TEST_P(FpduReceiverTest, NothingReceivedChangesNothing) {
  Encode(MakeUlpdu(500, 3));
  RecordingSink sink;
  FpduReceiver receiver(options(), pool_, sink);
  for (size_t at = 0; at < stream_.size(); ++at) {
    (void)receiver.PrepareRead();
    ASSERT_TRUE(receiver.Commit(0));
    ASSERT_TRUE(Feed(receiver, ByteSpan(stream_).subspan(at, 1)));
  }
  EXPECT_EQ(sink.ulpdus(), sent_);
}

// A pool that keeps one block shows by the block's address whether the receiver gave it back.
TEST_P(FpduReceiverTest, HoldsNoStagingWhileIdle) {
  BufferPool pool(1);
  uint8_t* const block = pool.Take().data();
  auto given_back = [&] { return pool.Take().data() == block; };
  Encode(MakeUlpdu(100, 1));
  RecordingSink sink;
  FpduReceiver receiver(options(), pool, sink);
  EXPECT_TRUE(given_back());
  (void)receiver.PrepareRead();
  EXPECT_TRUE(receiver.Commit(0));
  EXPECT_TRUE(given_back());
  EXPECT_TRUE(Feed(receiver, ByteSpan(stream_).first(5)));
  EXPECT_FALSE(given_back());
}

TEST_P(FpduReceiverTest, GivesStagingBackAfterTheLastByte) {
  BufferPool pool(1);
  uint8_t* const block = pool.Take().data();
  Encode(MakeUlpdu(100, 1));
  RecordingSink sink;
  FpduReceiver receiver(options(), pool, sink);
  for (size_t at = 0; at < stream_.size(); ++at) ASSERT_TRUE(Feed(receiver, ByteSpan(stream_).subspan(at, 1)));
  EXPECT_EQ(pool.Take().data(), block);
}

size_t HeaderOf(uint8_t first_byte) { return (first_byte & 0x80) != 0 ? 14 : 18; }

// Places what follows the header of a DDP segment, a tagged one or a Send's, into one piece.
struct SegmentSink : llp::UlpduSink {
  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override {
    const size_t header = HeaderOf(head[0]);
    piece = {memory.data(), length - header};
    *plan = {header, {&piece, 1}};
    return true;
  }
  bool End() override {
    ++ended;
    return true;
  }
  Bytes memory = Bytes(65536);
  iovec piece;
  int ended = 0;
};

Bytes MakeTaggedUlpdu(size_t length, uint32_t seed) {
  Bytes ulpdu = MakeUlpdu(length, seed);
  ulpdu[0] |= 0x80;
  return ulpdu;
}

Bytes MakeSend(size_t length, uint32_t seed) {
  Bytes ulpdu = MakeUlpdu(length, seed);
  ulpdu[0] &= 0x7f;
  std::fill_n(ulpdu.begin() + 6, 4, 0);  // the queue
  return ulpdu;
}

TEST(FpduReceiverDirectTest, PlacesALongPayloadInTheSinksMemoryWithTheNextHeadBehindIt) {
  for (const auto make : {MakeTaggedUlpdu, MakeSend}) {
    SegmentSink sink;
    BufferPool pool;
    FpduReceiver receiver({.crc = false, .markers = false}, pool, sink);
    Bytes stream;
    const Bytes first = make(60014, 1), second = make(50014, 2);
    const size_t header = HeaderOf(first[0]);
    ReferenceEncode(stream, first, false, false);
    const size_t second_at = stream.size();
    ReferenceEncode(stream, second, false, false);

    EXPECT_TRUE(Feed(receiver, ByteSpan(stream).first(100)));
    const std::span<const iovec> into = receiver.PrepareRead();
    ASSERT_EQ(into.size(), 2u);
    EXPECT_EQ(into[0].iov_base, sink.memory.data() + (100 - 2 - header));
    EXPECT_EQ(into[0].iov_len, 60014u - (100 - 2));
    EXPECT_EQ(into[1].iov_len, 4u + 2 + header);
    EXPECT_TRUE(receiver.Commit(0));

    // One read ends the first and shows the second's head, whose payload is then placed directly, all of it.
    EXPECT_TRUE(Feed(receiver, ByteSpan(stream).subspan(100, second_at - 100 + 2 + header)));
    EXPECT_EQ(sink.ended, 1);
    const std::span<const iovec> next = receiver.PrepareRead();
    ASSERT_EQ(next.size(), 2u);
    EXPECT_EQ(next[0].iov_base, sink.memory.data());
    EXPECT_EQ(next[0].iov_len, 50014u - header);
    EXPECT_TRUE(receiver.Commit(0));
    EXPECT_TRUE(Feed(receiver, ByteSpan(stream).subspan(second_at + 2 + header)));
    EXPECT_EQ(sink.ended, 2);
    EXPECT_TRUE(std::equal(second.begin() + static_cast<ptrdiff_t>(header), second.end(), sink.memory.begin()));
    EXPECT_TRUE(receiver.at_boundary());
  }
}

// Reads as the wire does, as much as is asked for. Returns how many times.
int ReadAll(FpduReceiver& receiver, ByteSpan stream) {
  int reads = 0;
  for (; !stream.empty(); ++reads) {
    size_t count = 0;
    for (const iovec& piece : receiver.PrepareRead()) {
      const size_t some = std::min(piece.iov_len, stream.size());
      std::copy_n(stream.begin(), some, static_cast<uint8_t*>(piece.iov_base));
      stream = stream.subspan(some);
      count += some;
    }
    EXPECT_TRUE(receiver.Commit(count));
  }
  return reads;
}

// A long one and the short rest of its message, and so on (messages of 64 KiB); then each followed by a tiny one too (a Send that says that it is there).
TEST(FpduReceiverDirectTest, LearnsWhatFollowsLongFpdus) {
  constexpr int kMessages = 50;
  for (const bool with_tiny : {false, true}) {
    Bytes stream;
    for (uint32_t i = 0; i < kMessages; ++i) {
      ReferenceEncode(stream, MakeTaggedUlpdu(60014, i), false, false);
      ReferenceEncode(stream, MakeTaggedUlpdu(796, i), false, false);
      if (with_tiny) ReferenceEncode(stream, MakeTaggedUlpdu(34, i), false, false);
    }
    SegmentSink sink;
    BufferPool pool;
    FpduReceiver receiver({.crc = false, .markers = false}, pool, sink);
    EXPECT_LE(ReadAll(receiver, stream), 2 * kMessages + 3);
    EXPECT_EQ(sink.ended, (with_tiny ? 3 : 2) * kMessages);
  }
}

TEST(FpduReceiverDirectTest, ReadsManyShortFpdusAtOnce) {
  Bytes stream;
  std::vector<Bytes> sent;
  for (uint32_t i = 0; i < 390; ++i) {
    sent.push_back(MakeUlpdu(78, i));
    ReferenceEncode(stream, sent.back(), false, false);
  }
  BufferPool pool;
  RecordingSink sink;
  FpduReceiver receiver({.crc = false, .markers = false}, pool, sink);
  const std::span<const iovec> into = receiver.PrepareRead();
  ASSERT_GE(into.front().iov_len, stream.size());
  ASSERT_EQ(into.size(), 1u);
  std::copy(stream.begin(), stream.end(), static_cast<uint8_t*>(into.front().iov_base));
  EXPECT_TRUE(receiver.Commit(stream.size()));
  EXPECT_EQ(sink.ulpdus(), sent);
}

TEST(FpduReceiverDirectTest, EndsOnlyAfterTheCrcField) {
  Bytes stream;
  ReferenceEncode(stream, MakeUlpdu(41, 5), false, false);
  BufferPool pool;
  RecordingSink sink;
  FpduReceiver receiver({.crc = false, .markers = false}, pool, sink);
  EXPECT_TRUE(Feed(receiver, ByteSpan(stream).first(stream.size() - 1)));
  EXPECT_TRUE(sink.ulpdus().empty());
  EXPECT_FALSE(receiver.at_boundary());
  EXPECT_TRUE(Feed(receiver, ByteSpan(stream).last(1)));
  EXPECT_EQ(sink.ulpdus().size(), 1u);
}

TEST(FpduReceiverDirectTest, DivertsTheRestOfAPayloadAtEveryPoint) {
  Bytes ulpdu = MakeUlpdu(900, 6);
  ulpdu[0] = 14;  // the header's length for RecordingSink
  Bytes stream;
  ReferenceEncode(stream, ulpdu, false, false);
  const size_t first_length = stream.size();
  const Bytes next = MakeUlpdu(60, 7);
  ReferenceEncode(stream, next, false, false);
  BufferPool pool;
  for (size_t at = 0; at < first_length; ++at) {
    RecordingSink sink;
    FpduReceiver receiver({.crc = false, .markers = false}, pool, sink);
    ASSERT_TRUE(Feed(receiver, ByteSpan(stream).first(at), 50));
    const bool begun = at >= 2 + llp::kUlpduHeadLength;
    ASSERT_EQ(sink.between(), begun) << at;
    ASSERT_EQ(receiver.DivertPlacement(), begun) << at;
    ASSERT_TRUE(Feed(receiver, ByteSpan(stream).subspan(at, first_length - at), 33));
    ASSERT_EQ(sink.ulpdus().size(), 1u);
    if (begun) {
      const Bytes& got = sink.ulpdus().front();
      const size_t placed = std::min<size_t>(at - 2, 900);
      ASSERT_TRUE(std::equal(ulpdu.begin(), ulpdu.begin() + static_cast<long>(placed), got.begin()));
      for (size_t i = placed; i < 900; ++i) ASSERT_EQ(got[i], 0xcc) << at << " " << i;
    } else {
      ASSERT_EQ(sink.ulpdus().front(), ulpdu);
    }
    // The one after it is placed as ever.
    ASSERT_TRUE(Feed(receiver, ByteSpan(stream).subspan(first_length)));
    ASSERT_EQ(sink.ulpdus().back(), next);
  }
}

TEST(FpduReceiverDirectTest, CountsBytesOfAReadThatWasPreparedBeforeTheDiversion) {
  Bytes ulpdu = MakeUlpdu(9000, 8);
  ulpdu[0] = 14;
  Bytes stream;
  ReferenceEncode(stream, ulpdu, false, false);
  ReferenceEncode(stream, MakeUlpdu(60, 9), false, false);
  BufferPool pool;
  RecordingSink sink;
  FpduReceiver receiver({.crc = false, .markers = false}, pool, sink);
  ASSERT_TRUE(Feed(receiver, ByteSpan(stream).first(200)));
  const std::span<const iovec> into = receiver.PrepareRead();
  EXPECT_TRUE(receiver.DivertPlacement());
  size_t at = 200;
  const size_t first_piece = into.front().iov_len;
  std::copy_n(stream.begin() + 200, first_piece, static_cast<uint8_t*>(into.front().iov_base));
  ASSERT_TRUE(receiver.Commit(first_piece));
  at += first_piece;
  ASSERT_TRUE(Feed(receiver, ByteSpan(stream).subspan(at)));
  EXPECT_EQ(sink.ulpdus().size(), 2u);
}

TEST(FpduReceiverDirectTest, PreparesAtMost64PiecesOfAScatteredPayload) {
  struct Sink : llp::UlpduSink {
    bool Begin(size_t length, ByteSpan, llp::UlpduPlan* plan) override {
      for (size_t i = 0; i < 200; ++i) pieces.push_back({memory.data() + 10 * i, i == 199 ? length - 1990 : 10});
      *plan = {0, pieces};
      return true;
    }
    bool End() override { return true; }
    Bytes memory = Bytes(4000);
    std::vector<iovec> pieces;
  } sink;
  BufferPool pool;
  FpduReceiver receiver({.crc = false, .markers = false}, pool, sink);
  Bytes stream;
  const Bytes ulpdu = MakeUlpdu(3000, 10);
  ReferenceEncode(stream, ulpdu, false, false);
  ASSERT_TRUE(Feed(receiver, ByteSpan(stream).first(74)));
  const std::span<const iovec> into = receiver.PrepareRead();
  EXPECT_EQ(into.size(), 64u);
  ASSERT_TRUE(receiver.Commit(0));
  ASSERT_TRUE(Feed(receiver, ByteSpan(stream).subspan(74)));
  EXPECT_TRUE(std::equal(ulpdu.begin(), ulpdu.end(), sink.memory.begin()));
}

TEST(FpduReceiverCrcTest, SeesAnyFlippedBitBeforeTheSinkSeesAnything) {
  Bytes stream;
  ReferenceEncode(stream, MakeUlpdu(61, 11), true, false);
  BufferPool pool;
  for (size_t bit = 16; bit < stream.size() * 8; ++bit) {  // from 16: a flipped length is a case of its own
    Bytes bad = stream;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    RecordingSink sink(0);  // would refuse the first Begin
    FpduReceiver receiver({.crc = true, .markers = false}, pool, sink);
    ASSERT_FALSE(Feed(receiver, bad)) << bit;
    ASSERT_EQ(receiver.error(), FpduError::kBadCrc) << bit;
  }
}

TEST(FpduReceiverCrcTest, PlacesNothingAndDivertsNothingBeforeAnFpduIsWhole) {
  Bytes stream;
  ReferenceEncode(stream, MakeUlpdu(5000, 12), true, false);
  BufferPool pool;
  RecordingSink sink;
  FpduReceiver receiver({.crc = true, .markers = false}, pool, sink);
  EXPECT_TRUE(Feed(receiver, ByteSpan(stream).first(stream.size() - 1)));
  EXPECT_FALSE(sink.between());
  EXPECT_FALSE(receiver.DivertPlacement());
  EXPECT_TRUE(Feed(receiver, ByteSpan(stream).last(1)));
  EXPECT_EQ(sink.ulpdus().size(), 1u);
}

TEST(FpduReceiverMarkerTest, RefusesAMarkerThatPointsElsewhere) {
  BufferPool pool;
  for (bool crc : {false, true}) {
    Bytes stream;
    ReferenceEncode(stream, MakeUlpdu(1500, 13), false, true);
    for (size_t marker = 0; marker < stream.size(); marker += 512) {
      Bytes bad = stream;
      bad[marker + 3] ^= 4;
      if (crc) {  // valid over the wrong marker
        const uint32_t value = Crc32c({bad.data(), bad.size() - 4});
        StoreCrc32c(bad.data() + bad.size() - 4, value);
      }
      RecordingSink sink;
      FpduReceiver receiver({.crc = crc, .markers = true}, pool, sink);
      EXPECT_FALSE(Feed(receiver, bad)) << marker;
      EXPECT_EQ(receiver.error(), FpduError::kBadMarker);
      EXPECT_TRUE(sink.ulpdus().empty());
    }
  }
}

TEST(FpduReceiverMarkerTest, TakesEveryPhaseOfEveryShortLength) {
  BufferPool pool;
  for (bool crc : {false, true}) {
    for (size_t phase = 0; phase < 512; phase += 4) {
      Bytes stream;
      std::vector<Bytes> sent;
      // Brings the stream to that phase: the marker and 6 bytes around the ULPDU.
      if (phase >= 12) sent.push_back(MakeUlpdu(phase - 4 - 6, 14));
      for (size_t length : {1, 2, 3, 4, 18, 74, 509, 510, 511, 512, 513}) sent.push_back(MakeUlpdu(length, 15));
      for (const Bytes& ulpdu : sent) ReferenceEncode(stream, ulpdu, crc, true);
      RecordingSink sink;
      FpduReceiver receiver({.crc = crc, .markers = true}, pool, sink);
      ASSERT_TRUE(Feed(receiver, stream, 200));
      ASSERT_EQ(sink.ulpdus(), sent) << phase;
    }
  }
}

// The first bytes of an ULPDU: where it goes, and whether that may be later than its end.
struct Address {
  uint32_t offset;
  bool deferrable;
};

class PlacingSink : public llp::UlpduSink {
 public:
  static constexpr size_t kPage = 4096;

  PlacingSink() : memory_(static_cast<uint8_t*>(mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~PlacingSink() override { munmap(memory_, 3 * kPage); }

  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override {
    std::memcpy(&address_, head.data(), sizeof address_);
    piece_ = {memory_ + address_.offset, length - sizeof address_};
    *plan = {.header_length = sizeof address_, .payload = {&piece_, 1}, .deferrable = address_.deferrable};
    return true;
  }
  bool End() override {
    ++ended_;
    if (!address_.deferrable) seen_.emplace_back(memory_, memory_ + kPage);
    return true;
  }
  void OnUnplaceable() override { ++unplaceable_; }
  void OnUnplaced(size_t length, ByteSpan head, bool gone) override {
    Address address;
    std::memcpy(&address, head.data(), sizeof address);
    EXPECT_NE(length, 0u);
    unplaced_.push_back(address.offset);
    gone_ += gone;
    EXPECT_EQ(gone, address.offset == kPage);
  }

  static Bytes Ulpdu(Address address, size_t bytes, uint8_t value) {
    Bytes ulpdu(sizeof address + bytes, value);
    std::memcpy(ulpdu.data(), &address, sizeof address);
    return ulpdu;
  }

  uint8_t* memory_;
  Address address_{};
  iovec piece_{};
  size_t ended_ = 0;
  std::vector<Bytes> seen_;  // the first page at the end of each that is not deferrable
  std::vector<size_t> unplaced_;
  size_t gone_ = 0, unplaceable_ = 0;
};

// A thread of Weft, to which each copy is a call of the kernel.
void OnAThreadOfOurs(const std::function<void()>& body) {
  std::thread([&] {
    SetThreadOfOurs();
    body();
  }).join();
}

TEST_P(FpduReceiverTest, WhatMayBePlacedLaterIsThereWhenTheNextIsEnded) {
  std::vector<Bytes> expected;
  Bytes memory(PlacingSink::kPage);
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    // Most lie over one another: the last one counts.
    const Address address{static_cast<uint32_t>(random() % 100), random() % 150 != 0};
    const size_t bytes = 1 + random() % 300;
    Encode(PlacingSink::Ulpdu(address, bytes, static_cast<uint8_t>(i)));
    std::fill_n(memory.begin() + address.offset, bytes, static_cast<uint8_t>(i));
    if (!address.deferrable) expected.push_back(memory);
  }
  for (const size_t step : {0u, 1000u, 65536u}) {
    for (const bool ours : {true, false}) {
      PlacingSink sink;
      FpduReceiver receiver(options(), pool_, sink);
      const auto feed = [&] { EXPECT_TRUE(Feed(receiver, stream_, step)); };
      ours ? OnAThreadOfOurs(feed) : feed();
      EXPECT_EQ(sink.ended_, sent_.size());
      EXPECT_EQ(sink.seen_, expected);
      EXPECT_EQ(Bytes(sink.memory_, sink.memory_ + PlacingSink::kPage), memory);
      EXPECT_TRUE(sink.unplaced_.empty());
    }
  }
}

// What is placed together with those before it has no memory itself: that is told of it alone.
TEST_P(FpduReceiverTest, OfOneThatIsNotEndedAndHasNoMemoryTheSinkIsToldBetween) {
  for (uint32_t i = 0; i < 3; ++i) Encode(PlacingSink::Ulpdu({i == 2 ? static_cast<uint32_t>(PlacingSink::kPage) : 10 * i, i != 2}, 10, 0x5a));
  PlacingSink sink;
  ASSERT_EQ(mprotect(sink.memory_ + PlacingSink::kPage, PlacingSink::kPage, PROT_NONE), 0);
  FpduReceiver receiver(options(), pool_, sink);
  OnAThreadOfOurs([&] { EXPECT_TRUE(Feed(receiver, stream_)); });
  EXPECT_EQ(sink.unplaceable_, 1u);
  EXPECT_TRUE(sink.unplaced_.empty());
  EXPECT_EQ(sink.ended_, 3u);
  EXPECT_EQ(sink.memory_[19], 0x5a);
}

TEST_P(FpduReceiverTest, TheSinkIsToldWhichOfThoseThatWereEndedHasNoMemory) {
  for (uint32_t i = 0; i < 10; ++i) Encode(PlacingSink::Ulpdu({i == 7 ? static_cast<uint32_t>(PlacingSink::kPage) : 10 * i, true}, 10 + i, 0x5a));
  PlacingSink sink;
  ASSERT_EQ(mprotect(sink.memory_ + PlacingSink::kPage, PlacingSink::kPage, PROT_NONE), 0);  // a hole could be filled by another mapping
  FpduReceiver receiver(options(), pool_, sink);
  OnAThreadOfOurs([&] { EXPECT_FALSE(Feed(receiver, stream_)); });
  EXPECT_EQ(receiver.error(), FpduError::kNone);
  EXPECT_EQ(sink.unplaced_, (std::vector<size_t>{90, 80, PlacingSink::kPage}));
  EXPECT_EQ(sink.gone_, 1u);
  EXPECT_EQ(sink.ended_, 10u);
  EXPECT_EQ(sink.memory_[69], 0x5a);
  EXPECT_EQ(sink.memory_[85], 0) << "of one behind it";
}

}  // namespace
}  // namespace weft::mpa
