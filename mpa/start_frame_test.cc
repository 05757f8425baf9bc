#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "mpa/start_up.h"

namespace weft::mpa {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Frame(const char* key, std::initializer_list<uint8_t> rest) {
  Bytes bytes(16 + rest.size());
  std::copy(rest.begin(), rest.end(), std::copy_n(key, 16, bytes.begin()));
  return bytes;
}

StartFrame MustParse(const Bytes& bytes, bool reply) {
  Result<std::optional<StartFrame>, StartError> parsed = StartFrame::Parse(bytes, reply);
  EXPECT_TRUE(parsed.ok() && parsed.value().has_value());
  return *parsed.value();
}

StartError ParseError(const Bytes& bytes, bool reply) {
  Result<std::optional<StartFrame>, StartError> parsed = StartFrame::Parse(bytes, reply);
  return parsed.ok() ? StartError::kNone : parsed.error();
}

TEST(StartFrameTest, ReadsARequestOfRevision1) {
  const StartFrame frame = MustParse(Frame("MPA ID Req Frame", {0xc0, 1, 0, 3, 'a', 'b', 'c'}), false);
  EXPECT_TRUE(frame.markers);
  EXPECT_TRUE(frame.crc);
  EXPECT_FALSE(frame.rejected);
  EXPECT_FALSE(frame.enhanced);
  EXPECT_EQ(frame.revision, 1);
  EXPECT_EQ(frame.private_data, (Bytes{'a', 'b', 'c'}));
}

TEST(StartFrameTest, ReadsAnEnhancedReply) {
  const Bytes bytes = Frame("MPA ID Rep Frame", {0x70, 2, 0, 6, 0x80, 0x10, 0x40, 0x08, 'x', 'y'});
  const StartFrame frame = MustParse(bytes, true);
  EXPECT_FALSE(frame.markers);
  EXPECT_TRUE(frame.crc);
  EXPECT_TRUE(frame.rejected);
  EXPECT_TRUE(frame.enhanced);
  EXPECT_EQ(frame.ird_word, 0x8010);
  EXPECT_EQ(frame.ord_word, 0x4008);
  EXPECT_EQ(frame.private_data, (Bytes{'x', 'y'}));
  EXPECT_EQ(frame.Serialize(), bytes);
  EXPECT_EQ(frame.ToString(),
            "MPA reply rev 2 crc rejected, 2 bytes of private data, IRD 16 ORD 8 peer-to-peer rtr-read");
}

TEST(StartFrameTest, WritesWhatItReads) {
  for (int bits = 0; bits < 32; ++bits) {
    for (size_t length : {0u, 1u, 2u, 3u, 4u, 5u, 507u, 508u}) {
      StartFrame frame;
      frame.reply = bits & 1;
      frame.markers = bits & 2;
      frame.crc = bits & 4;
      frame.rejected = frame.reply && (bits & 8);
      frame.enhanced = bits & 16;
      frame.revision = frame.enhanced ? 2 : 1;
      if (frame.enhanced) {
        frame.ird_word = 0xc123;
        frame.ord_word = 0x4321;
      }
      frame.private_data.assign(length, 0x77);
      const Bytes bytes = frame.Serialize();
      ASSERT_EQ(bytes.size(), kStartFrameLength + length + (frame.enhanced ? 4 : 0));
      const StartFrame again = MustParse(bytes, frame.reply);
      ASSERT_EQ(again.Serialize(), bytes);
      ASSERT_EQ(again.private_data, frame.private_data);
      ASSERT_EQ(again.ird_word, frame.ird_word);
    }
  }
}

TEST(StartFrameTest, AsksForMoreAtEverySplitPoint) {
  StartFrame frame;
  frame.revision = 2;
  frame.enhanced = true;
  frame.private_data.assign(100, 1);
  const Bytes bytes = frame.Serialize();
  for (size_t split = 0; split < bytes.size(); ++split) {
    const ByteSpan front = ByteSpan(bytes).first(split);
    const auto parsed = StartFrame::Parse(front, false);
    ASSERT_TRUE(parsed.ok()) << split;
    ASSERT_FALSE(parsed.value().has_value()) << split;
    ASSERT_EQ(StartFrame::NeededBytes(front), split < 20 ? 20 : bytes.size());
  }
}

TEST(StartFrameTest, RefusesAWrongKeyAtTheFirstByteThatShowsIt) {
  EXPECT_EQ(ParseError({'G'}, false), StartError::kBadKey);
  EXPECT_EQ(ParseError({'M', 'P', 'A', '!'}, false), StartError::kBadKey);
  const Bytes request = Frame("MPA ID Req Frame", {0, 1, 0, 0});
  for (size_t i = 0; i < 16; ++i) {
    Bytes bad = request;
    bad[i] ^= 0x20;
    bad.resize(i + 1);
    EXPECT_EQ(ParseError(bad, false), StartError::kBadKey) << i;
  }
}

TEST(StartFrameTest, RefusesTheOtherKindOfFrame) {
  EXPECT_EQ(ParseError(Frame("MPA ID Req Frame", {0, 1, 0, 0}), true), StartError::kBadKey);
  EXPECT_EQ(ParseError(Frame("MPA ID Rep Frame", {0, 1, 0, 0}), false), StartError::kBadKey);
}

TEST(StartFrameTest, RefusesRevisionsOtherThan1And2) {
  for (int revision = 0; revision < 256; ++revision) {
    const Bytes bytes = Frame("MPA ID Req Frame", {0, static_cast<uint8_t>(revision), 0, 0});
    EXPECT_EQ(ParseError(bytes, false), revision == 1 || revision == 2 ? StartError::kNone : StartError::kBadRevision);
  }
}

TEST(StartFrameTest, RefusesMoreThan512BytesOfPrivateDataWithoutWaitingForThem) {
  EXPECT_EQ(ParseError(Frame("MPA ID Req Frame", {0, 1, 0x02, 0x01}), false), StartError::kPrivateDataTooLong);
  EXPECT_EQ(ParseError(Frame("MPA ID Req Frame", {0, 1, 0xff, 0xff}), false), StartError::kPrivateDataTooLong);
  EXPECT_EQ(ParseError(Frame("MPA ID Req Frame", {0, 1, 0x02, 0x00}), false), StartError::kNone);
}

TEST(StartFrameTest, RefusesAnEnhancedFrameWithoutIrdAndOrd) {
  for (uint8_t length : {0, 1, 2, 3}) {
    EXPECT_EQ(ParseError(Frame("MPA ID Req Frame", {0x10, 2, 0, length, 0, 0, 0}), false),
              StartError::kTruncatedIrdOrd);
  }
}

TEST(StartFrameTest, IgnoresReservedBitsAndRejectInARequest) {
  const StartFrame frame = MustParse(Frame("MPA ID Req Frame", {0x3f, 1, 0, 1, 'a'}), false);
  EXPECT_FALSE(frame.rejected);
  EXPECT_FALSE(frame.enhanced) << "S is a reserved bit in revision 1";
  EXPECT_EQ(frame.private_data.size(), 1u);
}

TEST(StartFrameCollectorTest, TakesTheFrameAndNotAByteMoreAtEveryStep) {
  StartFrame frame;
  frame.revision = 2;
  frame.enhanced = true;
  frame.private_data.assign(200, 9);
  Bytes stream = frame.Serialize();
  const size_t frame_length = stream.size();
  stream.insert(stream.end(), 100, 0xee);  // FPDUs queued behind it
  for (size_t step = 1; step <= stream.size(); ++step) {
    StartFrameCollector collector(false);
    size_t at = 0;
    for (MutableByteSpan into = collector.PrepareRead(); !into.empty(); into = collector.PrepareRead()) {
      const size_t count = std::min({into.size(), step, stream.size() - at});
      std::memcpy(into.data(), stream.data() + at, count);
      at += count;
      ASSERT_EQ(collector.Commit(count), StartError::kNone);
    }
    ASSERT_TRUE(collector.complete());
    ASSERT_EQ(at, frame_length);
    ASSERT_EQ(collector.frame().Serialize(), frame.Serialize());
  }
}

TEST(StartFrameCollectorTest, AsksForNothingMoreAfterABadFrame) {
  StartFrameCollector collector(true);
  const MutableByteSpan into = collector.PrepareRead();
  std::memcpy(into.data(), "HTTP/1.1 400 Bad", 16);
  EXPECT_EQ(collector.Commit(0), StartError::kNone);
  EXPECT_EQ(collector.Commit(16), StartError::kBadKey);
  EXPECT_TRUE(collector.PrepareRead().empty());
  EXPECT_FALSE(collector.complete());
}

TEST(WeftTrailerTest, ComesBackAndLeavesTheProgramsBytes) {
  Bytes data = {'r', 'p', 'i', 'n', 'g'};
  WeftTrailer trailer;
  trailer.max_ulpdu = 4096;
  trailer.flags = 0x80;
  trailer.host_id = 0x0123456789abcdef;
  trailer.AppendTo(data);
  EXPECT_EQ(data.size(), 5 + WeftTrailer::kLength);
  EXPECT_EQ(std::string(data.end() - 8, data.end()), "WeftRNIC");
  const std::optional<WeftTrailer> taken = WeftTrailer::TakeFrom(data);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->version, 1);
  EXPECT_EQ(taken->max_ulpdu, 4096);
  EXPECT_EQ(taken->flags, 0x80);
  EXPECT_EQ(taken->host_id, 0x0123456789abcdef);
  EXPECT_EQ(data, (Bytes{'r', 'p', 'i', 'n', 'g'}));
  EXPECT_FALSE(WeftTrailer::TakeFrom(data).has_value());
}

TEST(WeftTrailerTest, LeavesForeignPrivateDataAlone) {
  for (size_t length : {0u, 19u, 20u, 512u}) {
    Bytes data(length, 'W');
    EXPECT_FALSE(WeftTrailer::TakeFrom(data).has_value());
    EXPECT_EQ(data.size(), length);
  }
  Bytes data;
  WeftTrailer().AppendTo(data);
  for (size_t i = 12; i < data.size(); ++i) {
    Bytes bad = data;
    bad[i] ^= 1;
    EXPECT_FALSE(WeftTrailer::TakeFrom(bad).has_value()) << i;
  }
}

TEST(WeftTrailerTest, AnInvitationGoesInFrontAndComesBack) {
  Bytes data = {'h', 'i'};
  WeftTrailer trailer;
  llp::Invitation& invitation = trailer.invitation.emplace();
  invitation.point = 0x1122334455667788;
  invitation.nonce.fill(0x5a);
  trailer.AppendTo(data);
  EXPECT_EQ(data.size(), 2 + WeftTrailer::kLength + WeftTrailer::kInvitationLength);
  const std::optional<WeftTrailer> taken = WeftTrailer::TakeFrom(data);
  ASSERT_TRUE(taken && taken->invitation);
  EXPECT_EQ(taken->invitation->point, invitation.point);
  EXPECT_EQ(taken->invitation->nonce, invitation.nonce);
  EXPECT_EQ(data, (Bytes{'h', 'i'}));
}

// tests/fuzz/sctp found that what was taken off did not come back the same.
TEST(WeftTrailerTest, AnInvitationWithoutRoomIsNoTrailer) {
  for (size_t cut : {size_t{1}, WeftTrailer::kInvitationLength}) {
    Bytes data;
    WeftTrailer trailer;
    trailer.invitation.emplace();
    trailer.AppendTo(data);
    data.erase(data.begin(), data.begin() + static_cast<ptrdiff_t>(cut));
    const Bytes before = data;
    EXPECT_FALSE(WeftTrailer::TakeFrom(data).has_value());
    EXPECT_EQ(data, before);
  }
}

TEST(WeftTrailerTest, NeverTakesAUlpduLimitBelowTheLeastMulpdu) {
  Bytes data;
  WeftTrailer trailer;
  trailer.max_ulpdu = 0;
  trailer.AppendTo(data);
  EXPECT_EQ(WeftTrailer::TakeFrom(data)->max_ulpdu, 128);
}

}  // namespace
}  // namespace weft::mpa
