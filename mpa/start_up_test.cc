#include "mpa/start_up.h"

#include <gtest/gtest.h>

namespace weft::mpa {
namespace {

using Bytes = std::vector<uint8_t>;

StartParams Params(uint16_t ird, uint16_t ord) {
  StartParams params;
  params.ird = ird;
  params.ord = ord;
  return params;
}

StartFrame OverTheWire(const StartFrame& frame) {
  const Bytes bytes = frame.Serialize();
  auto parsed = StartFrame::Parse(bytes, frame.reply);
  EXPECT_TRUE(parsed.ok() && parsed.value().has_value()) << frame.ToString();
  return *parsed.value();
}

struct Both {
  StartOutcome initiator, responder;
  StartError error = StartError::kNone;
  StartFrame request, reply;
};

Both Negotiate(const StartParams& initiator, const StartParams& responder) {
  Both both;
  both.request = OverTheWire(MakeRequest(initiator));
  both.reply = OverTheWire(MakeReply(both.request, responder, &both.responder));
  both.error = OnReply(initiator, both.reply, &both.initiator);
  return both;
}

TEST(StartUpTest, BothEndsAgreeWhateverTheyWant) {
  for (int bits = 0; bits < 1024; ++bits) {
    StartParams a = Params(bits & 1 ? 16 : 0, bits & 2 ? 8 : 1), b = Params(bits & 4 ? 4 : 0, bits & 8 ? 32 : 0);
    a.revision = bits & 16 ? 2 : 1;
    b.revision = bits & 32 ? 2 : 1;
    a.crc = bits & 64;
    b.crc = bits & 128;
    a.markers = bits & 256;
    b.peer_to_peer = bits & 256;
    b.markers = bits & 512;
    a.peer_to_peer = bits & 512;
    a.private_data = {'a'};
    b.private_data = {'b', 'b'};
    const Both both = Negotiate(a, b);
    SCOPED_TRACE(both.request.ToString() + " / " + both.reply.ToString());
    ASSERT_EQ(both.error, StartError::kNone);
    EXPECT_EQ(both.initiator.revision, both.responder.revision);
    EXPECT_EQ(both.initiator.crc, a.crc || b.crc);
    EXPECT_EQ(both.responder.crc, a.crc || b.crc);
    EXPECT_EQ(both.initiator.receive_markers, a.markers);
    EXPECT_EQ(both.responder.send_markers, a.markers);
    EXPECT_EQ(both.initiator.send_markers, b.markers);
    EXPECT_EQ(both.responder.receive_markers, b.markers);
    EXPECT_EQ(both.initiator.has_ird_ord, both.responder.has_ird_ord);
    EXPECT_EQ(both.initiator.rtr, both.responder.rtr);
    EXPECT_EQ(both.responder.private_data, a.private_data);
    EXPECT_EQ(both.initiator.private_data, b.private_data);
    if (both.initiator.has_ird_ord) {
      EXPECT_LE(both.initiator.ord, both.responder.ird);
      EXPECT_LE(both.responder.ord, both.initiator.ird);
    } else {
      EXPECT_EQ(both.initiator.ird, a.ird);
      EXPECT_EQ(both.responder.ord, b.ord);
      EXPECT_EQ(both.initiator.rtr, llp::Rtr::kNone);
    }
  }
}

TEST(StartUpTest, WritesTheRequestThatTheRfcDraws) {
  StartParams params = Params(16, 8);
  params.peer_to_peer = true;
  params.private_data = {0xab};
  Bytes expected = {'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e'};
  for (int byte : {0x50, 2, 0, 5, 0xc0, 0x10, 0xc0, 0x08, 0xab}) expected.push_back(static_cast<uint8_t>(byte));
  EXPECT_EQ(MakeRequest(params).Serialize(), expected);
}

TEST(StartUpTest, ReducesReadLimitsToWhatThePeerCanDo) {
  const Both both = Negotiate(Params(16, 8), Params(4, 32));
  EXPECT_EQ(both.responder.ird, 4);
  EXPECT_EQ(both.initiator.ord, 4);
  EXPECT_EQ(both.responder.ord, 16);
  EXPECT_EQ(both.initiator.ird, 16);
  EXPECT_EQ(DescribeRequest(both.request).ird, 8);
  EXPECT_EQ(DescribeRequest(both.request).ord, 16);
}

TEST(StartUpTest, LeavesLimitsAloneThatTheInitiatorDoesNotNegotiate) {
  StartFrame request = MakeRequest(Params(0, 0));
  request.ird_word = request.ord_word = 0x3fff;
  StartOutcome outcome;
  const StartFrame reply = MakeReply(request, Params(5, 6), &outcome);
  EXPECT_EQ(outcome.ird, 5);
  EXPECT_EQ(outcome.ord, 6);
  EXPECT_EQ(reply.ird_word, 0x3fff);
  EXPECT_EQ(reply.ord_word, 0x3fff);
}

TEST(StartUpTest, LeavesLimitsAloneThatTheResponderDoesNotNegotiate) {
  StartFrame reply;
  reply.reply = reply.enhanced = true;
  reply.revision = 2;
  reply.ird_word = reply.ord_word = 0x3fff;
  StartOutcome outcome;
  EXPECT_EQ(OnReply(Params(5, 6), reply, &outcome), StartError::kNone);
  EXPECT_EQ(outcome.ird, 5);
  EXPECT_EQ(outcome.ord, 6);
}

TEST(StartUpTest, NeverSaysNotNegotiatedByMistake) {
  const Both both = Negotiate(Params(65535, 65535), Params(65535, 65535));
  EXPECT_EQ(both.request.ird_word, 0x3ffe);
  EXPECT_EQ(both.request.ord_word, 0x3ffe);
  EXPECT_EQ(both.reply.ird_word, 0x3ffe);
  EXPECT_EQ(both.reply.ord_word, 0x3ffe);
}

TEST(StartUpTest, RefusesAResponderThatWillReadMoreThanWeCanTake) {
  StartFrame reply;
  reply.reply = reply.enhanced = true;
  reply.revision = 2;
  reply.ird_word = 1;
  reply.ord_word = 6;
  StartOutcome outcome;
  EXPECT_EQ(OnReply(Params(5, 5), reply, &outcome), StartError::kIrdOrdRefused);
  reply.ord_word = 5;
  EXPECT_EQ(OnReply(Params(5, 5), reply, &outcome), StartError::kNone);
}

TEST(StartUpTest, SettlesOnExactlyOneRtrForEveryCombination) {
  for (int offer = 1; offer < 8; ++offer) {
    for (int take = 0; take < 8; ++take) {
      StartParams a = Params(1, 1), b = Params(1, 1);
      a.peer_to_peer = true;
      a.rtr_send = offer & 1, a.rtr_write = offer & 2, a.rtr_read = offer & 4;
      b.rtr_send = take & 1, b.rtr_write = take & 2, b.rtr_read = take & 4;
      const Both both = Negotiate(a, b);
      SCOPED_TRACE(both.request.ToString() + " / " + both.reply.ToString());
      EXPECT_TRUE(both.reply.ird_word & kPeerToPeerBit);
      const int named = !!(both.reply.ird_word & kRtrSendBit) + !!(both.reply.ord_word & kRtrWriteBit) +
                        !!(both.reply.ord_word & kRtrReadBit);
      EXPECT_EQ(named, 1);
      if (take == 0 || (offer & take) != 0) {
        EXPECT_EQ(both.error, StartError::kNone);
        EXPECT_EQ(both.initiator.rtr, both.responder.rtr);
        const int common = take == 0 ? offer : offer & take;
        EXPECT_EQ(both.initiator.rtr, common & 2 ? llp::Rtr::kWrite : common & 4 ? llp::Rtr::kRead : llp::Rtr::kSend);
      } else {
        EXPECT_EQ(both.error, StartError::kNoCommonRtr);
      }
    }
  }
}

TEST(StartUpTest, ChoosesTheRtrFromTheReplyWhenItNamesSeveral) {
  StartParams ours = Params(1, 1);
  ours.peer_to_peer = true;
  StartFrame reply;
  reply.reply = reply.enhanced = true;
  reply.revision = 2;
  StartOutcome outcome;
  reply.ird_word = kPeerToPeerBit | kRtrSendBit;
  reply.ord_word = kRtrReadBit;
  EXPECT_EQ(OnReply(ours, reply, &outcome), StartError::kNone);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kRead);
  reply.ord_word = kRtrReadBit | kRtrWriteBit;
  EXPECT_EQ(OnReply(ours, reply, &outcome), StartError::kNone);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kWrite);
}

TEST(StartUpTest, IgnoresRtrBitsWithoutThePeerToPeerBit) {
  StartParams ours = Params(1, 1);
  ours.peer_to_peer = true;
  StartFrame reply;
  reply.reply = reply.enhanced = true;
  reply.revision = 2;
  reply.ird_word = kRtrSendBit;
  reply.ord_word = kRtrWriteBit | kRtrReadBit;
  StartOutcome outcome;
  EXPECT_EQ(OnReply(ours, reply, &outcome), StartError::kNone);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kNone);

  StartFrame request = MakeRequest(Params(1, 1));
  request.ird_word |= kRtrSendBit;
  EXPECT_EQ(MakeReply(request, ours, &outcome).ird_word & 0xc000, 0);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kNone);
}

TEST(StartUpTest, SendsNoRtrThatItDidNotOffer) {
  StartFrame reply;
  reply.reply = reply.enhanced = true;
  reply.revision = 2;
  reply.ird_word = kPeerToPeerBit | kRtrSendBit;
  StartOutcome outcome;
  EXPECT_EQ(OnReply(Params(1, 1), reply, &outcome), StartError::kNone);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kNone);
}

TEST(StartUpTest, MakesRoomForAnRtrThatIsARead) {
  StartParams a = Params(0, 0), b = Params(0, 0);
  a.peer_to_peer = true;
  a.rtr_send = a.rtr_write = false;
  const Both both = Negotiate(a, b);
  EXPECT_EQ(both.responder.rtr, llp::Rtr::kRead);
  EXPECT_EQ(both.responder.ird, 1);
  EXPECT_EQ(both.reply.ird_word & kIrdOrdMask, 1);
}

TEST(StartUpTest, FallsBackToRevision1WhenTheReplySaysSo) {
  StartParams ours = Params(5, 6);
  ours.peer_to_peer = true;
  StartFrame reply;
  reply.reply = true;
  reply.revision = 1;
  reply.private_data = {1, 2};
  StartOutcome outcome;
  EXPECT_EQ(OnReply(ours, reply, &outcome), StartError::kNone);
  EXPECT_EQ(outcome.revision, 1);
  EXPECT_FALSE(outcome.has_ird_ord);
  EXPECT_EQ(outcome.ird, 5);
  EXPECT_EQ(outcome.ord, 6);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kNone);
  EXPECT_EQ(outcome.private_data, (Bytes{1, 2}));
}

TEST(StartUpTest, RefusesAReplyOfAHigherRevisionThanAskedFor) {
  StartParams ours = Params(1, 1);
  ours.revision = 1;
  StartFrame reply;
  reply.reply = true;
  reply.revision = 2;
  StartOutcome outcome;
  EXPECT_EQ(OnReply(ours, reply, &outcome), StartError::kBadRevision);
}

TEST(StartUpTest, AnswersAPlainRequestPlainly) {
  // RFC 6581 section 10: also in revision 2 a request without S gets a reply without S.
  for (uint8_t revision : {1, 2}) {
    StartFrame request;
    request.revision = revision;
    request.private_data = {9};
    StartOutcome outcome;
    const StartFrame reply = OverTheWire(MakeReply(request, Params(3, 4), &outcome));
    EXPECT_EQ(reply.revision, revision);
    EXPECT_FALSE(reply.enhanced);
    EXPECT_FALSE(outcome.has_ird_ord);
    EXPECT_EQ(outcome.ird, 3);
    EXPECT_EQ(outcome.ord, 4);
    EXPECT_FALSE(OverTheWire(MakeReject(request, {})).enhanced);
  }
}

TEST(StartUpTest, CarriesPrivateDataOfARejection) {
  for (uint8_t revision : {1, 2}) {
    StartParams ours = Params(1, 1);
    ours.revision = revision;
    ours.peer_to_peer = true;
    const Bytes why(PrivateDataRoom(revision == 2), 0x42);
    const StartFrame reply = OverTheWire(MakeReject(OverTheWire(MakeRequest(ours)), why));
    StartOutcome outcome;
    EXPECT_EQ(OnReply(ours, reply, &outcome), StartError::kRejected);
    EXPECT_EQ(outcome.private_data, why);
    EXPECT_EQ(outcome.revision, revision);
  }
}

TEST(StartUpTest, HasWordsForEveryError) {
  for (int error = 0; error <= static_cast<int>(StartError::kNoCommonRtr); ++error) {
    EXPECT_STRNE(ToString(static_cast<StartError>(error)), "unknown");
  }
}

}  // namespace
}  // namespace weft::mpa
