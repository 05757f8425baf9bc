// RFC 5043, DDP over SCTP, clause by clause, and what RFC 6581 section 7 adds to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ddp/sctp/association.h"
#include "ddp/sctp/chunk.h"
#include "ddp/sctp/set_up_data.h"
#include "ddp/sctp/testing/end.h"

namespace weft::ddp::sctp {
namespace {

using testing::Bytes;
using testing::End;
using testing::Make;
using testing::Message;
using testing::RecordingSink;
using testing::Segment;
using testing::Send;
using Kind = Chunk::Kind;
using Lines = std::vector<std::string>;

// ---- Section 4

TEST(Rfc5043Section4, EachSegmentIsOneMessage) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  for (size_t length : {1, 14, 18, 100, 516}) {
    Send(session, Bytes(length, 7));
    const auto message = b.Take();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->ppid, 16u);
    EXPECT_EQ(message->bytes.size(), 2 + length);
    EXPECT_FALSE(b.Take());
  }
}

// ---- Sections 5.1 and 11.1

TEST(Rfc5043Section5_1, TheIndicationOfDdpIsOne) { EXPECT_EQ(kAdaptationIndication, 0x00000001u); }

TEST(Rfc5043Section11_1, DdpIsDoneOnlyWithAPeerThatIndicatesIt) {
  EXPECT_EQ(CheckAdaptation(std::nullopt), Adaptation::kNone);
  EXPECT_EQ(CheckAdaptation(1), Adaptation::kDdp);
  for (uint32_t other : {0u, 2u, 0x01000000u, 0xffffffffu}) EXPECT_EQ(CheckAdaptation(other), Adaptation::kOther);
}

// ---- Section 5.2

TEST(Rfc5043Section5_2, PayloadProtocolIdentifiersTellSegmentsFromControl) {
  EXPECT_EQ(kSegmentPpid, 16u);
  EXPECT_EQ(kControlPpid, 17u);
  for (uint32_t ppid : {0u, 1u, 15u, 18u}) {
    End b;
    RecordingSink sink;
    Session& session = b.Accepted(1, sink);
    b.Get({.stream = 1, .ppid = ppid, .bytes = Bytes(10)});
    EXPECT_EQ(session.state(), SessionState::kFailed);
  }
}

TEST(Rfc5043Section5_2_1, EveryMessageOfASessionCountsWhateverItsKind) {
  End b;
  RecordingSink sink;
  b.Get(Make(1, Kind::kInitiate, 0));
  Session* const session = b.association.TakeNews();
  session->Accept({});
  Send(*session, Bytes(20));
  Send(*session, Bytes(20));
  session->End();
  Lines sent;
  while (const auto message = b.Take()) {
    sent.push_back(message->ToString());
    b.AcknowledgeAll();
  }
  EXPECT_EQ(sent, (Lines{"1: DDP Accept SSN=0 private data=0", "1: DDP Segment SSN=1 segment=20",
                         "1: DDP Segment SSN=2 segment=20", "1: DDP Terminate SSN=3 private data=0"}));
}

TEST(Rfc5043Section5_2_2, TheSsnStandsInFrontOfTheSegmentInNetworkByteOrder) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  for (int i = 1; i < 0x0102; ++i) {
    Send(session, Bytes(20));
    b.Take();
    b.AcknowledgeAll();
  }
  Send(session, {0xc1, 0x40, 9});
  EXPECT_EQ(b.Take()->bytes, (Bytes{0x01, 0x02, 0xc1, 0x40, 9}));
}

TEST(Rfc5043Section5_2_3, FunctionCodesAreThoseOfTheRfc) {
  for (uint8_t code = 1; code <= 4; ++code) {
    EXPECT_EQ(Make(1, static_cast<Kind>(code), 0x0a0b).bytes, (Bytes{0x0a, 0x0b, 0, code}));
    EXPECT_EQ(Chunk::Parse(17, Bytes{0, 0, 0, code})->kind, static_cast<Kind>(code));
  }
}

TEST(Rfc5043Section5_2_3, PrivateDataMayBeEmptyAndHasAtMost512Bytes) {
  for (Kind kind : {Kind::kInitiate, Kind::kAccept, Kind::kReject}) {
    EXPECT_TRUE(Chunk::Parse(17, Make(1, kind, 0).bytes).ok());
    EXPECT_TRUE(Chunk::Parse(17, Make(1, kind, 0, Bytes(512)).bytes).ok());
    EXPECT_EQ(Chunk::Parse(17, Make(1, kind, 0, Bytes(513)).bytes).error(), ChunkError::kPrivateDataTooLong);
  }
  End a;
  EXPECT_EQ(a.association.Open(Bytes(513), false), nullptr);
}

TEST(Rfc5043Section5_2_3, ATerminateHasNoPrivateData) {
  EXPECT_EQ(Chunk::Parse(17, Make(1, Kind::kTerminate, 0, {1}).bytes).error(), ChunkError::kPrivateDataInTerminate);
}

TEST(Rfc5043Section5_2_3, ReceivedControlMessagesAreReportedWithTheirPrivateData) {
  for (const Kind kind : {Kind::kAccept, Kind::kReject, Kind::kTerminate}) {
    End a;
    Session* const session = a.association.Open({}, false);
    a.Take();
    const Bytes data = kind == Kind::kTerminate ? Bytes() : Bytes{1, 2, 3};
    a.Get(Make(session->stream(), kind, 0, data));
    EXPECT_EQ(a.association.TakeNews(), session);
    EXPECT_EQ(session->private_data(), data);
  }
}

TEST(Rfc5043Section5_2_3, AnInitiateBeyondTheLimitOfRequestsIsAnsweredWithATerminate) {
  End b({.streams = 8, .most_requests = 1});
  b.Get(Make(1, Kind::kInitiate, 0));
  b.Get(Make(2, Kind::kInitiate, 0));
  EXPECT_EQ(b.TakeAll(), Lines{"2: DDP Terminate SSN=0 private data=0"});
}

// ---- Section 6

TEST(Rfc5043Section6, AStreamPairHasTheSameIdentifierBothWays) {
  End a({.initiator = true, .streams = 8}), b;
  Session* const session = a.association.Open({}, false);
  const auto initiate = a.Take();
  EXPECT_EQ(initiate->stream, session->stream());
  b.Get(*initiate);
  b.association.TakeNews()->Accept({});
  EXPECT_EQ(b.Take()->stream, session->stream());
}

TEST(Rfc5043Section6, SsnsHaveNoGapsEvenWhenWhatWaitedIsForgotten) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  for (int i = 0; i < 4; ++i) Send(session, Bytes(20));
  b.Take();
  b.Take();
  session.Abort();
  EXPECT_EQ(b.TakeAll(), Lines{"1: DDP Terminate SSN=3 private data=0"});
}

TEST(Rfc5043Section6_1, TheSsnIsZeroAtTheBeginningOfEachSession) {
  End a({.initiator = true, .streams = 1});
  RecordingSink sink;
  for (int round = 0; round < 3; ++round) {
    Session* const session = a.association.Open({}, false);
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(a.TakeAll(), Lines{"0: DDP Initiate SSN=0 private data=0"});
    a.Get(Make(0, Kind::kAccept, 0));
    Send(*session, Bytes(20));
    EXPECT_EQ(a.TakeAll(), Lines{"0: DDP Segment SSN=1 segment=20"});
    session->End();
    a.Take();
    a.Get(Make(0, Kind::kTerminate, 1));
    a.association.Release(*session);
    a.AcknowledgeAll();
  }
}

TEST(Rfc5043Section6_1, TheOrderIsThatOfTheSsnsNotOfArrival) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  b.Get(Make(1, Kind::kTerminate, 3));
  b.Get(Segment(1, 2, {2}));
  EXPECT_EQ(session.state(), SessionState::kAccepted);
  b.Get(Segment(1, 1, {1}));
  EXPECT_EQ(session.state(), SessionState::kEnded);
  EXPECT_EQ(sink.ulpdus, (std::vector<Bytes>{{1}, {2}}));
}

// What comes in each state of a session, and what fits.
TEST(Rfc5043Section6_1, WhatFitsToNoSequenceTerminatesTheSession) {
  enum class State { kInitiated, kAcceptedByPeer, kRequested, kAcceptedByUs, kEnded };
  for (const State state :
       {State::kInitiated, State::kAcceptedByPeer, State::kRequested, State::kAcceptedByUs, State::kEnded}) {
    for (const Kind kind : {Kind::kSegment, Kind::kInitiate, Kind::kAccept, Kind::kReject, Kind::kTerminate}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(state)) + " " + ToString(kind));
      End end({.initiator = true, .streams = 8});
      RecordingSink sink;
      Session* session;
      uint16_t next = 1;
      if (state == State::kInitiated || state == State::kAcceptedByPeer) {
        session = end.association.Open({}, false);
        end.Take();
        if (state == State::kAcceptedByPeer) end.Get(Make(0, Kind::kAccept, 0));
        if (state == State::kInitiated) next = 0;
      } else {
        end.Get(Make(0, Kind::kInitiate, 0));
        session = end.association.TakeNews();
        if (state != State::kRequested) session->Accept({});
        if (state == State::kEnded) end.Get(Make(0, Kind::kTerminate, next++));
      }
      if (session->state() == SessionState::kAccepted) {
        session->Attach(sink);
        session->SetOpen(true);
      }
      end.TakeAll();
      end.AcknowledgeAll();
      end.Get(Make(0, kind, next, kind == Kind::kSegment ? Bytes(20) : Bytes()));

      bool legal = kind == Kind::kTerminate || kind == Kind::kSegment;
      if (state == State::kInitiated) legal = kind != Kind::kSegment && kind != Kind::kInitiate;
      if (state == State::kEnded) legal = false;
      EXPECT_EQ(session->state() != SessionState::kFailed, legal);
      if (legal) continue;
      if (session->state() == SessionState::kFailed) session->End();  // at once, if it has no user with last words
      const Lines sent = end.TakeAll();
      ASSERT_EQ(sent.size(), 1u);
      EXPECT_EQ(sent[0].substr(0, 16), "0: DDP Terminate");
      EXPECT_EQ(end.association.counters().failed, 1u);
    }
  }
}

TEST(Rfc5043Section6_2, AnAcceptedSessionEndsWithATerminateOfEitherSide) {
  for (const bool ours : {true, false}) {
    End b;
    RecordingSink sink;
    Session& session = b.Accepted(1, sink);
    Send(session, Bytes(20));
    b.Get(Segment(1, 1));
    ours ? session.End() : b.Get(Make(1, Kind::kTerminate, 2));
    if (ours) {
      EXPECT_EQ(b.TakeAll(), (Lines{"1: DDP Segment SSN=1 segment=20", "1: DDP Terminate SSN=2 private data=0"}));
    } else {
      EXPECT_EQ(session.state(), SessionState::kEnded);
    }
  }
}

TEST(Rfc5043Section6_2, TheTerminateFollowsAnRdmapTerminateWhichIsASegmentLikeOthers) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  b.Get(Segment(1, 1));
  b.Get(Segment(1, 1));
  EXPECT_EQ(session.state(), SessionState::kFailed);
  EXPECT_TRUE(b.TakeAll().empty());  // its user has last words
  Send(session, Bytes(40));
  session.End();
  EXPECT_EQ(b.TakeAll(), (Lines{"1: DDP Segment SSN=1 segment=40", "1: DDP Terminate SSN=2 private data=0"}));
}

TEST(Rfc5043Section6_3, ARejectionIsTheProgramsAndTheLastMessage) {
  End b;
  b.Get(Make(1, Kind::kInitiate, 0));
  Session* const session = b.association.TakeNews();
  session->Reject(Bytes{5});
  session->End();
  EXPECT_EQ(b.TakeAll(), Lines{"1: DDP Reject SSN=0 private data=1"});
  EXPECT_TRUE(session->over());
}

TEST(Rfc5043Section6_3, WithoutAProgramsWordNothingIsRejected) {
  // A request that is given up, one that lies, one too many: all get a Terminate.
  End b({.streams = 8, .most_requests = 2});
  for (uint16_t stream = 1; stream <= 3; ++stream) b.Get(Make(stream, Kind::kInitiate, 0));
  b.association.TakeNews()->End();
  b.Get(Make(2, Kind::kAccept, 1));
  Lines sent = b.TakeAll();
  std::ranges::sort(sent);
  EXPECT_EQ(sent, (Lines{"1: DDP Terminate SSN=0 private data=0", "2: DDP Terminate SSN=0 private data=0",
                         "3: DDP Terminate SSN=0 private data=0"}));
}

TEST(Rfc5043Section6_4, ATerminateInsteadOfAnAnswerIsToldFromARejection) {
  End a;
  Session* const session = a.association.Open({}, false);
  a.Take();
  a.Get(Make(session->stream(), Kind::kTerminate, 0));
  EXPECT_EQ(session->state(), SessionState::kRefused);
  EXPECT_TRUE(session->over());
  EXPECT_TRUE(a.TakeAll().empty());
}

TEST(Rfc5043Section6_6, AControlMessageIsNotSentWhileItMayOvertakeOneBeforeIt) {
  // Ours: until the Initiate, or the Accept, is acknowledged or shown to have come.
  End a;
  Session* const asked = a.association.Open({}, false);
  a.Take();
  asked->End();
  EXPECT_FALSE(a.Take());
  a.AcknowledgeAll();
  EXPECT_TRUE(a.Take());

  End b;
  b.Get(Make(1, Kind::kInitiate, 0));
  Session* const accepted = b.association.TakeNews();
  accepted->Accept({});
  b.Take();
  accepted->End();
  EXPECT_FALSE(b.Take());
  b.AcknowledgeAll();
  EXPECT_TRUE(b.Take());
}

TEST(Rfc5043Section6_6, TheActiveSideSendsNoSegmentBeforeTheAnswer) {
  End a;
  Session* const session = a.association.Open({}, false);
  EXPECT_FALSE(session->HasRoom(0, 0));
  a.Take();
  EXPECT_FALSE(session->HasRoom(0, 0));
  a.Get(Make(session->stream(), Kind::kAccept, 0));
  EXPECT_TRUE(session->HasRoom(0, 0));
}

TEST(Rfc5043Section6_6, SegmentsOfAnActiveSideThatWentByTheAcknowledgementAloneWaitForTheAnswer) {
  End b;
  RecordingSink sink;
  b.Get(Make(1, Kind::kInitiate, 0));
  b.Get(Segment(1, 1));
  Session* const session = b.association.TakeNews();
  EXPECT_EQ(session->state(), SessionState::kRequested);
  session->Accept({});
  session->Attach(sink);
  session->Deliver(10);
  EXPECT_EQ(sink.ulpdus.size(), 1u);
}

TEST(Rfc5043Section6_6, AStreamIsNotUsedAgainWhileAMessageMayBeOutstanding) {
  for (const bool acknowledged : {false, true}) {
    for (const bool peer_ended : {false, true}) {
      End a({.initiator = true, .streams = 1});
      Session* const session = a.association.Open({}, false);
      a.Take();
      a.Get(Make(0, Kind::kAccept, 0));
      a.association.Release(*session);
      a.Take();
      if (acknowledged) a.AcknowledgeAll();
      if (peer_ended) a.Get(Make(0, Kind::kTerminate, 1));
      EXPECT_EQ(a.association.Open({}, false) != nullptr, acknowledged && peer_ended);
    }
  }
}

// ---- Section 8

TEST(Rfc5043Section8, StreamsThatExistCostNothing) {
  End a({.initiator = true, .streams = 65536});
  EXPECT_EQ(a.association.sessions(), 0u);
  EXPECT_EQ(a.association.resting_streams(), 0u);
  EXPECT_EQ(a.association.held_bytes(), 0u);
}

// ---- Section 9

TEST(Rfc5043Section9, TheLongestSegmentFitsIntoThePathsPacketButHasAtLeast516Bytes) {
  for (size_t longest_message : {0, 100, 516, 518, 552, 1452, 8952, 65496}) {
    const size_t segment = MaxSegment(longest_message);
    EXPECT_GE(segment, 516u);
    if (segment > 516) {
      EXPECT_LT(segment + kSsnLength, longest_message);  // room for control chunks
    }
  }
}

TEST(Rfc5043Section9, AControlMessageWith512BytesFitsIntoTheLeast) {
  EXPECT_EQ(Make(1, Kind::kInitiate, 0, Bytes(512)).bytes.size(), 516u);
}

TEST(Rfc5043Section9, DdpIsToldOfTheLimitAndOfItsChanges) {
  End b({.streams = 8, .max_segment = 1400});
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  EXPECT_EQ(session.max_ulpdu(), 1400u);
  b.association.SetMaxSegment(100);
  EXPECT_EQ(session.max_ulpdu(), 516u);
}

TEST(Rfc5043Section9DeathTest, LongerSegmentsAreRefused) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  EXPECT_DEATH(Send(session, Bytes(517)), "max_ulpdu");
}

// ---- Section 10

TEST(Rfc5043Section10, NoMoreThan32767MessagesAreOutWithoutAcknowledgement) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  size_t out = 0;
  for (;; ++out) {
    Send(session, Bytes(14));
    if (!b.Take()) break;
    ASSERT_LT(out, 40'000u);
  }
  EXPECT_EQ(out, 32'767u);
  b.AcknowledgeAll();
  EXPECT_TRUE(b.Take());
}

TEST(Rfc5043Section10, TheReceiverTakesAsManyInAnyOrder) {
  End b({.streams = 8, .most_held_bytes = 32768 * 256});
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  for (uint16_t ssn = 1 + 32'766; ssn >= 1; --ssn) b.Get(Segment(1, ssn, {static_cast<uint8_t>(ssn)}));
  EXPECT_EQ(session.state(), SessionState::kAccepted);
  ASSERT_EQ(sink.ulpdus.size(), 32'767u);
  for (size_t i = 0; i < sink.ulpdus.size(); ++i) ASSERT_EQ(sink.ulpdus[i], Bytes{static_cast<uint8_t>(i + 1)});
}

TEST(Rfc5043Section10, ASsnThatNoMessageInFlightCanHaveTerminatesTheSessionAndTakesNoRoom) {
  for (const uint16_t ssn : {1 + 32'767, 1 + 40'000, 65'535, 0}) {
    End b;
    RecordingSink sink;
    Session& session = b.Accepted(1, sink);
    b.Get(Segment(1, ssn));
    EXPECT_EQ(session.state(), SessionState::kFailed);
    EXPECT_EQ(session.error(), SessionError::kGap);
    EXPECT_EQ(b.association.held_bytes(), 0u);
  }
}

// ---- Section 11.3

TEST(Rfc5043Section11_3, WhenTheAssociationIsGoneEveryUserHearsAndNothingIsSent) {
  End b;
  RecordingSink sink;
  Session& one = b.Accepted(1, sink);
  Session& two = b.Accepted(2, sink);
  Send(one, Bytes(20));
  while (b.association.TakeNews()) {
  }
  b.association.OnLost();
  EXPECT_TRUE(b.association.TakeNews() != nullptr && b.association.TakeNews() != nullptr);
  EXPECT_EQ(one.state(), SessionState::kLost);
  EXPECT_EQ(two.state(), SessionState::kLost);
  EXPECT_TRUE(b.TakeAll().empty());
}

TEST(Rfc5043Section11_3, TheEndOfOneStreamIsNotTheEndOfTheOthers) {
  End b;
  RecordingSink sink, other_sink;
  Session& one = b.Accepted(1, sink);
  Session& other = b.Accepted(2, other_sink);
  b.Get(Make(1, Kind::kReject, 1));
  EXPECT_EQ(one.state(), SessionState::kFailed);
  b.Get(Segment(2, 1));
  EXPECT_EQ(other.state(), SessionState::kAccepted);
  EXPECT_EQ(other_sink.ulpdus.size(), 1u);
}

// ---- RFC 6581 section 7

TEST(Rfc6581Section7, EnhancedFunctionCodesAreThoseOfTheRfc) {
  EXPECT_EQ(Make(1, Kind::kInitiate, 0, Bytes(4), true).bytes[3], 5);
  EXPECT_EQ(Make(1, Kind::kAccept, 0, Bytes(4), true).bytes[3], 6);
  EXPECT_EQ(Make(1, Kind::kReject, 0, {}, true).bytes[3], 7);
}

TEST(Rfc6581Section7, IrdAndOrdAreTheFirst32BitsOfPrivateDataAndCountAmongThe512Bytes) {
  const SetUpData data{.reads = llp::ReadWords{.ird = 0x0102, .ord = 0x0304}, .program = Bytes(508, 9)};
  const auto bytes = data.Serialize();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), 512u);
  EXPECT_EQ(Bytes(bytes->begin(), bytes->begin() + 5), (Bytes{1, 2, 3, 4, 9}));
  for (Kind kind : {Kind::kInitiate, Kind::kAccept}) {
    EXPECT_EQ(Chunk::Parse(17, Make(1, kind, 0, Bytes(3), true).bytes).error(), ChunkError::kTruncatedReads);
  }
}

TEST(Rfc6581Section7, AnEnhancedRequestHasAnEnhancedAnswer) {
  for (const bool enhanced : {false, true}) {
    End a({.initiator = true, .streams = 8}), b;
    Session* const session = a.association.Open(Bytes(4), enhanced);
    b.Get(*a.Take());
    Session* const theirs = b.association.TakeNews();
    EXPECT_EQ(theirs->enhanced(), enhanced);
    theirs->Accept(Bytes(4));
    const auto accept = b.Take();
    EXPECT_EQ(accept->bytes[3], enhanced ? 6 : 2);
    a.Get(*accept);
    EXPECT_EQ(session->state(), SessionState::kAccepted);

    End other;
    Session* const mixed = other.association.Open(Bytes(4), enhanced);
    other.Take();
    other.Get(Make(mixed->stream(), Kind::kAccept, 0, Bytes(4), !enhanced));
    EXPECT_EQ(mixed->state(), SessionState::kFailed);
  }
}

TEST(Rfc6581Section7, APlainRejectOfAnEnhancedRequestSaysThatThePlainOneWouldNotDoEither) {
  End a;
  Session* const session = a.association.Open(Bytes(4), true);
  a.Take();
  a.Get(Make(session->stream(), Kind::kReject, 0, {1}));
  EXPECT_EQ(session->state(), SessionState::kRejected);
  EXPECT_FALSE(session->enhanced());

  End plain;
  Session* const asked = plain.association.Open({}, false);
  plain.Take();
  plain.Get(Make(asked->stream(), Kind::kReject, 0, {}, true));
  EXPECT_EQ(asked->state(), SessionState::kFailed);
}

TEST(Rfc6581Section7, TerminateHasOneFunctionCodeForBoth) {
  End b;
  RecordingSink sink;
  b.Get(Make(1, Kind::kInitiate, 0, Bytes(4), true));
  b.association.TakeNews()->End();
  EXPECT_EQ(b.Take()->bytes, (Bytes{0, 0, 0, 4}));
}

}  // namespace
}  // namespace weft::ddp::sctp
