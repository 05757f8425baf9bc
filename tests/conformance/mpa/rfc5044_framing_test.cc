// RFC 5044, the framing of full operation: sections 3 to 6 and 8, clause by clause.
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "mpa/fpdu_layout.h"
#include "tests/conformance/mpa/one_way.h"

namespace weft::mpa {
namespace {

constexpr Mode kModes[] = {{false, false}, {true, false}, {false, true}, {true, true}};

void FixCrc(Bytes& stream, size_t from) {
  StoreCrc32c(stream.data() + stream.size() - 4, Crc32c(ByteSpan(stream).subspan(from, stream.size() - 4 - from)));
}

size_t Pointer(const Bytes& stream, size_t marker) { return stream[marker + 2] << 8 | stream[marker + 3]; }

// ---- Section 3

TEST(Rfc5044Section3, MulpduIsBetween128And64768) {
  for (size_t emss : {0, 1, 128, 536, 1460, 8948, 65495}) {
    for (bool markers : {false, true}) {
      EXPECT_GE(MulpduForSegment(emss, markers), 128u);
      EXPECT_LE(MulpduForSegment(emss, markers), 64768u);
    }
  }
  BufferPool pool;
  EXPECT_EQ(FpduSender({.max_ulpdu = 65535}, pool).max_ulpdu(), 64768u);
}

TEST(Rfc5044Section3, ThereIsExactlyOneUlpduInAnFpdu) {
  for (const Mode& mode : kModes) {
    const std::vector<Bytes> ulpdus = {Bytes(1, 1), Bytes(2, 2), Bytes(700, 3), Bytes(64768, 4)};
    const Arrived arrived = Receive(mode, Send(mode, ulpdus), 1000);
    EXPECT_EQ(arrived.ulpdus, ulpdus);
  }
}

// ---- Section 4.1

TEST(Rfc5044Section4_1, LengthCountsTheUlpduAloneAndPadMakesFour) {
  for (size_t length = 1; length <= 600; ++length) {
    const Bytes stream = Send({false, false}, {Bytes(length, 0xff)});
    EXPECT_EQ(stream[0] << 8 | stream[1], static_cast<int>(length));
    EXPECT_EQ(stream.size() % 4, 0u);
    EXPECT_GE(stream.size(), length + 6);
    EXPECT_LE(stream.size(), length + 9);
    for (size_t pad = 2 + length; pad < stream.size() - 4; ++pad) EXPECT_EQ(stream[pad], 0);
  }
}

TEST(Rfc5044Section4_1, LengthDoesNotCountMarkers) {
  const Bytes stream = Send({false, true}, {Bytes(2000, 1)});
  EXPECT_EQ(stream[4] << 8 | stream[5], 2000);
}

TEST(Rfc5044Section4_1, PadIsIgnoredByTheReceiverButCoveredByTheCrc) {
  for (const Mode& mode : kModes) {
    Bytes stream = Send(mode, {Bytes(19, 7)});
    const size_t pad = stream.size() - 5;
    stream[pad] = 0x55;
    const Arrived wrong_crc = Receive(mode, stream);
    EXPECT_EQ(wrong_crc.error, mode.crc ? FpduError::kBadCrc : FpduError::kNone);
    FixCrc(stream, 0);
    EXPECT_EQ(Receive(mode, stream).ulpdus, std::vector<Bytes>{Bytes(19, 7)});
  }
}

TEST(Rfc5044Section4_1, CrcFieldIsPresentAndNotCheckedWhenCrcsAreOff) {
  for (bool markers : {false, true}) {
    const Mode mode = {false, markers};
    Bytes stream = Send(mode, {Bytes(40, 7)});
    for (size_t i = 1; i <= 4; ++i) stream[stream.size() - i] = 0xff;
    const Arrived arrived = Receive(mode, stream);
    EXPECT_EQ(arrived.ulpdus.size(), 1u);
    EXPECT_TRUE(arrived.operating);
    stream.pop_back();
    EXPECT_TRUE(Receive(mode, stream).ulpdus.empty());
  }
}

// ---- Section 4.2

TEST(Rfc5044Section4_2, ReservedIsSentAsZeroAndIgnoredOnReceive) {
  Bytes stream = Send({true, true}, {Bytes(1200, 7)});
  for (size_t marker = 0; marker < stream.size(); marker += 512) {
    EXPECT_EQ(stream[marker], 0);
    EXPECT_EQ(stream[marker + 1], 0);
    stream[marker] = 0xff;
    stream[marker + 1] = 0x01;
  }
  EXPECT_EQ(Receive({true, true}, stream).error, FpduError::kBadCrc);
  FixCrc(stream, 0);
  EXPECT_EQ(Receive({true, true}, stream).ulpdus.size(), 1u);
}

TEST(Rfc5044Section4_2, LowestTwoBitsOfThePointerCountAsZero) {
  Bytes stream = Send({true, true}, {Bytes(1200, 7)});
  for (size_t marker = 0; marker < stream.size(); marker += 512) {
    EXPECT_EQ(Pointer(stream, marker) & 3, 0u);
    stream[marker + 3] |= 3;
  }
  FixCrc(stream, 0);
  EXPECT_EQ(Receive({true, true}, stream).ulpdus.size(), 1u);
}

// ---- Section 4.3

TEST(Rfc5044Section4_3, FirstMarkerPrecedesTheFirstFpduAndPointsNowhere) {
  const Bytes stream = Send({true, true}, {Bytes(10, 1)});
  EXPECT_EQ(Part(stream, 0, 6), Hex({0, 0, 0, 0, 0, 10}));
}

TEST(Rfc5044Section4_3, MarkersStandAtEvery512thByteAndAllPointToTheirFpdu) {
  std::vector<Bytes> ulpdus;
  for (size_t i = 0; i < 400; ++i) ulpdus.emplace_back(1 + i * 37 % 3000, static_cast<uint8_t>(i));
  const Bytes stream = Send({false, true}, ulpdus);
  // Walk the stream by lengths alone and say for each marker where it must point.
  size_t at = 0;
  for (const Bytes& ulpdu : ulpdus) {
    if (at % 512 == 0) {
      ASSERT_EQ(Pointer(stream, at), 0u) << at;
      at += 4;
    }
    const size_t start = at;
    for (size_t left = FpduLength(ulpdu.size()); left != 0; left -= 4, at += 4) {
      if (at % 512 == 0) {
        ASSERT_EQ(Pointer(stream, at), at - start) << at;
        at += 4;
      }
    }
  }
  EXPECT_EQ(at, stream.size());
  EXPECT_EQ(Receive({false, true}, stream, 1448).ulpdus, ulpdus);
}

TEST(Rfc5044Section4_3, AMarkerInsideAnFpduIsAsInFigure4) {
  // A ULPDU of 16 bytes whose FPDU starts 12 before a marker: the stream so far is 500 long.
  const Bytes ulpdu = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Bytes stream = Send({false, true}, {Bytes(490, 9), ulpdu});
  ASSERT_EQ(stream.size(), 500u + 12 + 4 + 12);
  EXPECT_EQ(Part(stream, 500, 24), Hex({0, 16, 0, 1,  2,  3,  4,  5,  6,  7,  8, 9,  //
                                        0, 0,  0, 12, 10, 11, 12, 13, 14, 15, 0, 0}));
}

TEST(Rfc5044Section4_3, AMarkerBetweenFpdusIsZeroAndBelongsToTheSecond) {
  // The first FPDU fills the interval exactly.
  const Bytes stream = Send({true, true}, {Bytes(502, 1), Bytes(30, 2)});
  EXPECT_EQ(Pointer(stream, 512), 0u);
  EXPECT_EQ(Part(stream, 516, 2), Hex({0, 30}));
  const Bytes covered = Part(stream, 512, stream.size() - 512 - 4);
  EXPECT_EQ(LoadCrc32c(stream.data() + stream.size() - 4), Crc32c(covered));
  EXPECT_EQ(Receive({true, true}, stream).ulpdus.size(), 2u);
  // The end of the first alone is the end of an FPDU: no marker trails it.
  EXPECT_EQ(Send({true, true}, {Bytes(502, 1)}).size(), 512u);
}

TEST(Rfc5044Section4_3, MarkersAreNotPassedOn) {
  const std::vector<Bytes> ulpdus = {Bytes(5000, 0xab)};
  EXPECT_EQ(Receive({true, true}, Send({true, true}, ulpdus)).ulpdus, ulpdus);
}

// ---- Section 4.4

const Bytes kFigure5 =
    Join(Hex({0, 0, 0, 0, 0x00, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, 24),
         Hex({0x52, 0x23, 0x99, 0x83}));
const Bytes kFigure6 =
    Join(Hex({0x00, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x14}, 24),
         Hex({0x84, 0x92, 0x58, 0x98}));

Bytes ExampleUlpdu(int msn) { return Hex({0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, msn, 0, 0, 0, 0}, 24); }

TEST(Rfc5044Section4_4, TheFirstFpduIsAsInFigure5) {
  EXPECT_EQ(Send({true, true}, {ExampleUlpdu(1)}), kFigure5);
  EXPECT_EQ(Receive({true, true}, kFigure5).ulpdus, std::vector<Bytes>{ExampleUlpdu(1)});
}

TEST(Rfc5044Section4_4, TheSecondFpduIsAsInFigure6) {
  // The first, with the marker before it, takes 492 bytes.
  const Bytes first = Join(ExampleUlpdu(1), Bytes(440, 3));
  const Bytes stream = Send({true, true}, {first, ExampleUlpdu(2)});
  ASSERT_EQ(stream.size(), 492 + kFigure6.size());
  EXPECT_EQ(Part(stream, 492, kFigure6.size()), kFigure6);
  EXPECT_EQ(Receive({true, true}, stream).ulpdus.back(), ExampleUlpdu(2));
}

TEST(Rfc5044Section4_4, AMarkerBetweenPadAndCrcIsCovered) {
  // The CRC field would begin at 512.
  const Bytes stream = Send({true, true}, {Bytes(506, 1)});
  ASSERT_EQ(stream.size(), 520u);
  EXPECT_EQ(Pointer(stream, 512), 508u);
  EXPECT_EQ(LoadCrc32c(stream.data() + 516), Crc32c(ByteSpan(stream).first(516)));
  EXPECT_EQ(Receive({true, true}, stream).ulpdus.size(), 1u);
}

TEST(Rfc5044Section4_4, AnFpduWithAWrongCrcIsInvalid) {
  for (bool markers : {false, true}) {
    const Mode mode = {true, markers};
    Bytes stream = Send(mode, {Bytes(100, 1), Bytes(100, 2)});
    stream[stream.size() - 50] ^= 1;
    const Arrived arrived = Receive(mode, stream);
    EXPECT_EQ(arrived.error, FpduError::kBadCrc);
    EXPECT_EQ(arrived.ulpdus.size(), 1u);
  }
}

// ---- Section 4.5

TEST(Rfc5044Section4_5, MulpduFollowsTheFormulas) {
  for (size_t emss = 200; emss < 9000; ++emss) {
    EXPECT_EQ(MulpduForSegment(emss, false), emss - (6 + emss % 4));
    EXPECT_EQ(MulpduForSegment(emss, true), emss - (6 + 4 * ((emss + 511) / 512) + emss % 4));
  }
}

TEST(Rfc5044Section4_5, AShrunkSegmentDoesNotShrinkMulpduBelow128) {
  EXPECT_EQ(MulpduForSegment(64, false), 128u);
  EXPECT_EQ(MulpduForSegment(130, true), 128u);
}

// ---- Sections 5 and 6

TEST(Rfc5044Section5_2, ReceiversWorkWithoutAlignment) {
  for (const Mode& mode : kModes) {
    const std::vector<Bytes> ulpdus = {Bytes(1442, 1), Bytes(18, 2), Bytes(1442, 3), Bytes(5, 4), Bytes(9000, 5)};
    const Bytes stream = Send(mode, ulpdus);
    for (size_t segment = 1; segment <= 1500; segment += segment < 20 ? 1 : 61) {
      EXPECT_EQ(Receive(mode, stream, segment).ulpdus, ulpdus) << segment;
    }
  }
}

TEST(Rfc5044Section6, AnFpduIsPassedOnOnlyWhenItIsWhole) {
  for (const Mode& mode : kModes) {
    Bytes stream = Send(mode, {Bytes(300, 1)});
    const Bytes all = stream;
    for (size_t length = 0; length < all.size(); ++length) {
      EXPECT_TRUE(Receive(mode, Part(all, 0, length)).ulpdus.empty()) << length;
    }
    EXPECT_EQ(Receive(mode, all).ulpdus.size(), 1u);
  }
}

// ---- Section 8

TEST(Rfc5044Section8, Code3AMarkerThatDisagreesIsAnErrorWhenTheCrcIsValid) {
  Bytes stream = Send({true, true}, {Bytes(1200, 1)});
  stream[512 + 3] ^= 8;
  EXPECT_EQ(Receive({true, true}, stream).error, FpduError::kBadCrc);
  FixCrc(stream, 0);
  EXPECT_EQ(Receive({true, true}, stream).error, FpduError::kBadMarker);
}

TEST(Rfc5044Section8, NothingIsDeliveredAfterAnError) {
  for (const Mode& mode : kModes) {
    if (!mode.crc && !mode.markers) continue;
    Bytes stream = Send(mode, {Bytes(600, 1), Bytes(600, 2), Bytes(600, 3)});
    const size_t second = Send(mode, {Bytes(600, 1)}).size();
    stream[mode.crc ? second + 20 : 1024 + 3] ^= 0x10;
    const Arrived arrived = Receive(mode, stream, 700);
    EXPECT_FALSE(arrived.operating);
    EXPECT_NE(arrived.error, FpduError::kNone);
    EXPECT_EQ(arrived.ulpdus.size(), 1u);
  }
}

TEST(Rfc5044Section8, LengthsThatCannotBeAreErrors) {
  for (const Mode& mode : kModes) {
    const Bytes lead = mode.markers ? Bytes(4) : Bytes();
    EXPECT_EQ(Receive(mode, Join(lead, Hex({0, 0}, 6))).error, FpduError::kBadLength);
    EXPECT_EQ(Receive(mode, Join(lead, Hex({0x10, 0x01})), 0, 4096).error, FpduError::kBadLength);
    EXPECT_EQ(Receive(mode, Join(lead, Hex({0x10, 0x00})), 0, 4096).error, FpduError::kNone);
  }
}

}  // namespace
}  // namespace weft::mpa
