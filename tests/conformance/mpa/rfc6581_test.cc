// RFC 6581, enhanced connection set-up over MPA: sections 6, 9 and 10, clause by clause.
#include <gtest/gtest.h>

#include "mpa/start_up.h"

namespace weft::mpa {
namespace {

using Bytes = std::vector<uint8_t>;

StartParams Params(uint16_t ird, uint16_t ord) {
  StartParams params;
  params.ird = ird;
  params.ord = ord;
  return params;
}

StartFrame Enhanced(bool reply, uint16_t ird_word, uint16_t ord_word) {
  StartFrame frame;
  frame.reply = reply;
  frame.revision = 2;
  frame.enhanced = true;
  frame.ird_word = ird_word;
  frame.ord_word = ord_word;
  return frame;
}

// ---- Section 6

TEST(Rfc6581Section6, AnEnhancedFrameHasRevision2AndSAndCountsTheWords) {
  StartParams params = Params(7, 9);
  params.private_data = {1, 2};
  const Bytes bytes = MakeRequest(params).Serialize();
  EXPECT_EQ(bytes[16] & 0x10, 0x10);
  EXPECT_EQ(bytes[17], 2);
  EXPECT_EQ(bytes[18] << 8 | bytes[19], 6);
  EXPECT_EQ(Bytes(bytes.begin() + 20, bytes.end()), (Bytes{0, 7, 0, 9, 1, 2}));
}

TEST(Rfc6581Section6, WithoutSTheFrameIsTheOldOne) {
  Bytes bytes = MakeRequest(Params(7, 9)).Serialize();
  bytes[16] &= ~0x10;
  const auto parsed = StartFrame::Parse(bytes, false);
  ASSERT_TRUE(parsed.ok() && parsed.value().has_value());
  EXPECT_EQ((*parsed.value()).private_data, (Bytes{0, 7, 0, 9}));
}

TEST(Rfc6581Section6, RequestsOfRevision1AreStillAccepted) {
  StartParams old = Params(0, 0);
  old.revision = 1;
  StartOutcome outcome;
  const StartFrame reply = MakeReply(MakeRequest(old), Params(4, 4), &outcome);
  EXPECT_EQ(reply.revision, 1);
  EXPECT_EQ(OnReply(old, reply, &outcome), StartError::kNone);
}

TEST(Rfc6581Section6, SWithoutRoomForTheWordsIsMalformed) {
  Bytes bytes = MakeRequest(Params(7, 9)).Serialize();
  bytes[19] = 3;
  const auto parsed = StartFrame::Parse(bytes, false);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error(), StartError::kTruncatedIrdOrd);
}

// ---- Section 9.1

TEST(Rfc6581Section9_1, OrdIsNeverMoreThanThePeersIrd) {
  for (uint16_t initiator_ird : {0, 1, 16, 0x3ffe}) {
    for (uint16_t initiator_ord : {0, 1, 16, 0x3ffe}) {
      for (uint16_t responder_ird : {0, 1, 16, 0x3ffe}) {
        for (uint16_t responder_ord : {0, 1, 16, 0x3ffe}) {
          const StartParams ours = Params(initiator_ird, initiator_ord);
          StartOutcome at_initiator, at_responder;
          const StartFrame reply = MakeReply(MakeRequest(ours), Params(responder_ird, responder_ord), &at_responder);
          ASSERT_EQ(OnReply(ours, reply, &at_initiator), StartError::kNone);
          EXPECT_LE(at_initiator.ord, at_responder.ird);
          EXPECT_LE(at_responder.ord, at_initiator.ird);
          EXPECT_EQ(at_initiator.ord, std::min(initiator_ord, responder_ird));
          EXPECT_EQ(at_responder.ord, std::min(responder_ord, initiator_ird));
        }
      }
    }
  }
}

TEST(Rfc6581Section9_1, TheReplyCarriesTheRespondersActualValues) {
  StartOutcome outcome;
  const StartFrame reply = MakeReply(Enhanced(false, 16, 8), Params(4, 32), &outcome);
  EXPECT_EQ(reply.ird_word & 0x3fff, outcome.ird);
  EXPECT_EQ(reply.ord_word & 0x3fff, outcome.ord);
}

TEST(Rfc6581Section9_1, InitiatorWithoutTheRequiredIrdRefuses) {
  StartOutcome outcome;
  EXPECT_EQ(OnReply(Params(3, 3), Enhanced(true, 3, 4), &outcome), StartError::kIrdOrdRefused);
}

TEST(Rfc6581Section9_1, AllOnesFromTheInitiatorIsAnsweredWithAllOnes) {
  StartOutcome outcome;
  StartFrame reply = MakeReply(Enhanced(false, 8, 0x3fff), Params(4, 32), &outcome);
  EXPECT_EQ(reply.ird_word, 0x3fff);
  EXPECT_EQ(outcome.ird, 4);
  EXPECT_EQ(outcome.ord, 8);
  reply = MakeReply(Enhanced(false, 0x3fff, 2), Params(4, 32), &outcome);
  EXPECT_EQ(reply.ord_word, 0x3fff);
  EXPECT_EQ(outcome.ord, 32);
  EXPECT_EQ(outcome.ird, 2);
}

TEST(Rfc6581Section9_1, AllOnesFromTheResponderChangesNothing) {
  StartOutcome outcome;
  EXPECT_EQ(OnReply(Params(3, 9), Enhanced(true, 0x3fff, 0x3fff), &outcome), StartError::kNone);
  EXPECT_EQ(outcome.ird, 3);
  EXPECT_EQ(outcome.ord, 9);
}

TEST(Rfc6581Section9_1, ThePeersValuesReachTheUlpAlsoWithARejection) {
  StartFrame reply = Enhanced(true, 2, 1);
  reply.rejected = true;
  StartOutcome outcome;
  EXPECT_EQ(OnReply(Params(3, 9), reply, &outcome), StartError::kRejected);
  EXPECT_EQ(outcome.ord, 2);
  EXPECT_EQ(outcome.ird, 1);
  EXPECT_TRUE(outcome.has_ird_ord);
}

TEST(Rfc6581Section9_1, IrdGrowsToOneForAnRtrThatIsARead) {
  StartOutcome outcome;
  const StartFrame reply = MakeReply(Enhanced(false, 0x8000, 0x4000), Params(0, 0), &outcome);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kRead);
  EXPECT_EQ(reply.ird_word & 0x3fff, 1);
}

// ---- Section 9.2

TEST(Rfc6581Section9_2, ClientServerModelHasNoControlFlags) {
  StartParams params = Params(1, 1);
  const StartFrame request = MakeRequest(params);
  EXPECT_EQ(request.ird_word & 0xc000, 0);
  EXPECT_EQ(request.ord_word & 0xc000, 0);
  StartOutcome outcome;
  const StartFrame reply = MakeReply(request, params, &outcome);
  EXPECT_EQ(reply.ird_word & 0xc000, 0);
  EXPECT_EQ(reply.ord_word & 0xc000, 0);
}

TEST(Rfc6581Section9_2, InitiatorSetsAFlagForEachRtrItSupports) {
  StartParams params = Params(1, 1);
  params.peer_to_peer = true;
  params.rtr_write = false;
  const StartFrame request = MakeRequest(params);
  EXPECT_EQ(request.ird_word & 0xc000, 0xc000);
  EXPECT_EQ(request.ord_word & 0xc000, 0x4000);
}

TEST(Rfc6581Section9_2, ResponderMirrorsAAndNamesAnRtrThatTheInitiatorSupports) {
  for (uint16_t b : {0, 0x4000}) {
    for (uint16_t cd : {0, 0x4000, 0x8000, 0xc000}) {
      if (b == 0 && cd == 0) continue;
      StartOutcome outcome;
      const StartFrame reply = MakeReply(
          Enhanced(false, static_cast<uint16_t>(0x8001 | b), static_cast<uint16_t>(1 | cd)), Params(1, 1), &outcome);
      EXPECT_EQ(reply.ird_word & 0x8000, 0x8000);
      EXPECT_EQ((reply.ird_word & 0x4000) & ~b, 0);
      EXPECT_EQ((reply.ord_word & 0xc000) & ~cd, 0);
      EXPECT_NE((reply.ird_word & 0x4000) | (reply.ord_word & 0xc000), 0);
    }
  }
}

TEST(Rfc6581Section9_2, ResponderWithoutACommonRtrNamesOneOfItsOwn) {
  StartParams params = Params(1, 1);
  params.rtr_send = params.rtr_read = false;
  StartOutcome outcome;
  const StartFrame reply = MakeReply(Enhanced(false, 0xc001, 0x4001), params, &outcome);
  EXPECT_EQ(reply.ird_word & 0xc000, 0x8000);
  EXPECT_EQ(reply.ord_word & 0xc000, 0x8000);
}

TEST(Rfc6581Section9_2, InitiatorThatCanGenerateNoneOfTheRepliesRtrsFails) {
  StartParams params = Params(1, 1);
  params.peer_to_peer = true;
  params.rtr_read = false;
  StartOutcome outcome;
  EXPECT_EQ(OnReply(params, Enhanced(true, 0x8001, 0x4001), &outcome), StartError::kNoCommonRtr);
}

TEST(Rfc6581Section9_2, FlagsBCAndDAreIgnoredWithoutA) {
  StartOutcome outcome;
  const StartFrame reply = MakeReply(Enhanced(false, 0x4001, 0xc001), Params(1, 1), &outcome);
  EXPECT_EQ(reply.ird_word & 0xc000, 0);
  EXPECT_EQ(reply.ord_word & 0xc000, 0);
  EXPECT_EQ(outcome.rtr, llp::Rtr::kNone);
  EXPECT_EQ(DescribeRequest(Enhanced(false, 0x4001, 0xc001)).rtr, llp::Rtr::kNone);
}

// ---- Section 10

TEST(Rfc6581Section10, EnhancedIsAnsweredEnhancedAndPlainPlain) {
  StartOutcome outcome;
  EXPECT_TRUE(MakeReply(Enhanced(false, 1, 1), Params(1, 1), &outcome).enhanced);
  EXPECT_TRUE(MakeReject(Enhanced(false, 1, 1), {}).enhanced);
  StartFrame plain;
  EXPECT_FALSE(MakeReply(plain, Params(1, 1), &outcome).enhanced);
  EXPECT_FALSE(MakeReject(plain, {}).enhanced);
}

}  // namespace
}  // namespace weft::mpa
