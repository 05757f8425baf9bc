// RFC 5044, connection set-up: section 7.1, clause by clause.
#include <gtest/gtest.h>

#include <string>

#include "mpa/start_up.h"

namespace weft::mpa {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Frame(const std::string& key, int flags, int revision, const Bytes& private_data, int length = -1) {
  Bytes bytes(key.begin(), key.end());
  if (length < 0) length = static_cast<int>(private_data.size());
  for (int byte : {flags, revision, length >> 8, length & 0xff}) bytes.push_back(static_cast<uint8_t>(byte));
  bytes.insert(bytes.end(), private_data.begin(), private_data.end());
  return bytes;
}

const std::string kRequest = "MPA ID Req Frame";
const std::string kReply = "MPA ID Rep Frame";

StartError ErrorOf(const Bytes& bytes, bool reply) {
  auto parsed = StartFrame::Parse(bytes, reply);
  return parsed.ok() ? StartError::kNone : parsed.error();
}

StartFrame FrameOf(const Bytes& bytes, bool reply) {
  auto parsed = StartFrame::Parse(bytes, reply);
  EXPECT_TRUE(parsed.ok() && parsed.value().has_value());
  return *parsed.value();
}

StartParams Revision1() {
  StartParams params;
  params.revision = 1;
  return params;
}

TEST(Rfc5044Section7_1_1, KeysAreTheBytesOfTheRfc) {
  const Bytes request = MakeRequest(Revision1()).Serialize();
  const Bytes request_key = {0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
                             0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65};
  EXPECT_EQ(Bytes(request.begin(), request.begin() + 16), request_key);
  StartOutcome outcome;
  const Bytes reply = MakeReply(FrameOf(request, false), Revision1(), &outcome).Serialize();
  const Bytes reply_key = {0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
                           0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65};
  EXPECT_EQ(Bytes(reply.begin(), reply.begin() + 16), reply_key);
}

TEST(Rfc5044Section7_1_1, MAsksForMarkersInTheOtherDirectionOnly) {
  for (bool initiator : {false, true}) {
    for (bool responder : {false, true}) {
      StartParams ours = Revision1(), theirs = Revision1();
      ours.markers = initiator;
      theirs.markers = responder;
      const StartFrame request = MakeRequest(ours);
      EXPECT_EQ((request.Serialize()[16] & 0x80) != 0, initiator);
      StartOutcome at_responder, at_initiator;
      const StartFrame reply = MakeReply(request, theirs, &at_responder);
      EXPECT_EQ((reply.Serialize()[16] & 0x80) != 0, responder);
      ASSERT_EQ(OnReply(ours, reply, &at_initiator), StartError::kNone);
      EXPECT_EQ(at_responder.send_markers, initiator);
      EXPECT_EQ(at_responder.receive_markers, responder);
      EXPECT_EQ(at_initiator.send_markers, responder);
      EXPECT_EQ(at_initiator.receive_markers, initiator);
    }
  }
}

TEST(Rfc5044Section7_1_1, CInEitherFrameTurnsCrcsOnAtBothEnds) {
  for (bool initiator : {false, true}) {
    for (bool responder : {false, true}) {
      StartParams ours = Revision1(), theirs = Revision1();
      ours.crc = initiator;
      theirs.crc = responder;
      StartOutcome at_responder, at_initiator;
      const StartFrame request = MakeRequest(ours);
      EXPECT_EQ((request.Serialize()[16] & 0x40) != 0, initiator);
      const StartFrame reply = MakeReply(request, theirs, &at_responder);
      ASSERT_EQ(OnReply(ours, reply, &at_initiator), StartError::kNone);
      EXPECT_EQ(at_responder.crc, initiator || responder);
      EXPECT_EQ(at_initiator.crc, initiator || responder);
    }
  }
}

TEST(Rfc5044Section7_1_1, RIsZeroAndUncheckedInARequestAndRejectsInAReply) {
  EXPECT_EQ(MakeRequest(Revision1()).Serialize()[16] & 0x20, 0);
  EXPECT_FALSE(FrameOf(Frame(kRequest, 0x20, 1, {}), false).rejected);
  EXPECT_TRUE(FrameOf(Frame(kReply, 0x20, 1, {}), true).rejected);
  StartOutcome outcome;
  EXPECT_EQ(OnReply(Revision1(), FrameOf(Frame(kReply, 0x20, 1, {'n', 'o'}), true), &outcome), StartError::kRejected);
  EXPECT_EQ(outcome.private_data, (Bytes{'n', 'o'}));
}

TEST(Rfc5044Section7_1_1, ResIsZeroWhenSentAndNotCheckedWhenReceived) {
  EXPECT_EQ(MakeRequest(Revision1()).Serialize()[16] & 0x1f, 0);
  EXPECT_EQ(FrameOf(Frame(kRequest, 0x1f, 1, {1, 2, 3}), false).private_data.size(), 3u);
}

TEST(Rfc5044Section7_1_1, RevIsCheckedAndReported) {
  EXPECT_EQ(MakeRequest(Revision1()).Serialize()[17], 1);
  EXPECT_EQ(DescribeRequest(FrameOf(Frame(kRequest, 0, 1, {}), false)).revision, 1);
  EXPECT_EQ(ErrorOf(Frame(kRequest, 0, 0, {}), false), StartError::kBadRevision);  // RDMA Consortium, appendix C
  EXPECT_EQ(ErrorOf(Frame(kRequest, 0, 3, {}), false), StartError::kBadRevision);
}

TEST(Rfc5044Section7_1_1, PrivateDataIsUpTo512Bytes) {
  for (size_t length : {0u, 1u, 511u, 512u}) {
    StartParams params = Revision1();
    params.private_data.assign(length, 0x5a);
    const Bytes bytes = MakeRequest(params).Serialize();
    EXPECT_EQ(bytes[18] << 8 | bytes[19], static_cast<int>(length));
    EXPECT_EQ(DescribeRequest(FrameOf(bytes, false)).private_data, params.private_data);
  }
  EXPECT_EQ(ErrorOf(Frame(kRequest, 0, 1, {}, 513), false), StartError::kPrivateDataTooLong);
}

TEST(Rfc5044Section7_1_2, Rule2AResponderWaitsForTheWholeRequest) {
  const Bytes bytes = Frame(kRequest, 0, 1, Bytes(50, 1));
  for (size_t length = 0; length < bytes.size(); ++length) {
    auto parsed = StartFrame::Parse(ByteSpan(bytes).first(length), false);
    ASSERT_TRUE(parsed.ok());
    EXPECT_FALSE(parsed.value().has_value());
  }
}

TEST(Rfc5044Section7_1_2, Rule5AnUnexpectedKeyIsAnError) {
  EXPECT_EQ(ErrorOf(Frame("MPA ID req Frame", 0, 1, {}), false), StartError::kBadKey);
  EXPECT_EQ(ErrorOf({'S', 'S', 'H', '-'}, false), StartError::kBadKey);
}

TEST(Rfc5044Section7_1_2, Rule8TwoInitiatorsNoticeEachOther) {
  EXPECT_EQ(ErrorOf(MakeRequest(Revision1()).Serialize(), true), StartError::kBadKey);
}

TEST(Rfc5044Section7_1_2, Rule9NoByteBeyondThePrivateDataIsTaken) {
  Bytes stream = Frame(kRequest, 0, 1, {1, 2, 3});
  StartFrameCollector collector(false);
  size_t at = 0;
  for (MutableByteSpan into = collector.PrepareRead(); !into.empty(); into = collector.PrepareRead()) {
    ASSERT_LE(at + into.size(), stream.size());
    std::copy_n(stream.begin() + static_cast<long>(at), into.size(), into.begin());
    at += into.size();
    ASSERT_EQ(collector.Commit(into.size()), StartError::kNone);
  }
  EXPECT_EQ(at, stream.size());
  EXPECT_EQ(collector.frame().private_data, (Bytes{1, 2, 3}));
}

}  // namespace
}  // namespace weft::mpa
