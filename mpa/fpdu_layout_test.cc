#include "mpa/fpdu_layout.h"

#include <gtest/gtest.h>

namespace weft::mpa {
namespace {

TEST(FpduLayoutTest, PadsToFourBytes) {
  EXPECT_EQ(FpduLength(1), 8u);
  EXPECT_EQ(FpduLength(2), 8u);
  EXPECT_EQ(FpduLength(3), 12u);
  EXPECT_EQ(FpduLength(4), 12u);
  EXPECT_EQ(FpduLength(6), 12u);
  EXPECT_EQ(FpduLength(7), 16u);
  EXPECT_EQ(FpduLength(42), 48u);
  EXPECT_EQ(FpduLength(65535), 65544u);
  for (size_t length = 0; length <= kMaxUlpduLength; ++length) {
    ASSERT_EQ(FpduLength(length) % 4, 0u);
    ASSERT_LT(PadLength(length), 4u);
  }
}

TEST(FpduLayoutTest, CountsMarkersAsAWalkOverTheStreamDoes) {
  for (size_t phase = 4; phase < kMarkerInterval; phase += 4) {
    for (size_t length = 8; length <= 2100; length += 4) {
      size_t position = phase, markers = 0;
      for (size_t word = 0; word < length; word += 4, position += 4) {
        if (position % kMarkerInterval == 0) {
          ++markers;
          position += 4;
        }
      }
      ASSERT_EQ(MarkersInside(phase, length), markers) << phase << " " << length;
    }
  }
}

TEST(FpduLayoutTest, KnowsTheLongestMarkedFpdu) {
  for (size_t phase = 4; phase < kMarkerInterval; phase += 4) {
    const size_t length = FpduLength(kMaxUlpduLength);
    ASSERT_LE(kMarkerLength + length + kMarkerLength * MarkersInside(phase, length), kMaxMarkedFpduLength);
  }
}

TEST(FpduLayoutTest, DerivesMulpduFromTheSegmentSize) {
  // RFC 5044 section 4.5: EMSS - (6 + EMSS mod 4), with markers 4 * Ceiling(EMSS / 512) less.
  EXPECT_EQ(MulpduForSegment(1460, false), 1454u);
  EXPECT_EQ(MulpduForSegment(1448, false), 1442u);
  EXPECT_EQ(MulpduForSegment(1447, false), 1438u);
  EXPECT_EQ(MulpduForSegment(1460, true), 1442u);
  EXPECT_EQ(MulpduForSegment(1024, true), 1010u);
  EXPECT_EQ(MulpduForSegment(1025, true), 1006u);
  EXPECT_EQ(MulpduForSegment(100, false), 128u);
  EXPECT_EQ(MulpduForSegment(0, true), 128u);
  EXPECT_EQ(MulpduForSegment(65483, false), 64768u);
}

TEST(FpduLayoutTest, FpdusOfMulpduFitTheSegment) {
  for (size_t emss = 140; emss <= 65535; ++emss) {
    ASSERT_LE(FpduLength(MulpduForSegment(emss, false)), emss);
    const size_t length = FpduLength(MulpduForSegment(emss, true));
    if (emss > 9000 && emss % 97 != 0) continue;
    for (size_t phase = 0; phase < kMarkerInterval; phase += 4) {
      const size_t lead = phase == 0 ? kMarkerLength : 0;
      ASSERT_LE(lead + length + kMarkerLength * MarkersInside(phase + lead, length), emss) << emss << " " << phase;
    }
  }
}

}  // namespace
}  // namespace weft::mpa
