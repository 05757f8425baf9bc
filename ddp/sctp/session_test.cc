// One session: what an end says and takes in each state.
#include "ddp/sctp/session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "ddp/sctp/association.h"
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

Bytes Text(const char* text) { return Bytes(text, text + std::strlen(text)); }
Bytes Numbered(uint8_t number, size_t length = 30) { return Bytes(length, number); }

// --- set-up ---

TEST(SessionTest, AskedAndAcceptedItCarriesSegmentsBothWaysAndEnds) {
  End a({.initiator = true, .streams = 8}), b;
  RecordingSink at_a, at_b;
  Session* const ours = a.association.Open(Text("hello"), false);
  ASSERT_NE(ours, nullptr);
  EXPECT_EQ(ours->state(), SessionState::kInitiated);
  EXPECT_EQ(a.association.TakeNews(), nullptr);
  b.Get(*a.Take());

  Session* const theirs = b.association.TakeNews();
  ASSERT_NE(theirs, nullptr);
  EXPECT_EQ(theirs->state(), SessionState::kRequested);
  EXPECT_EQ(theirs->private_data(), Text("hello"));
  EXPECT_EQ(theirs->stream(), ours->stream());
  EXPECT_TRUE(theirs->Accept(Text("welcome")));
  theirs->Attach(at_b);
  theirs->SetOpen(true);
  a.Get(*b.Take());
  ASSERT_EQ(a.association.TakeNews(), ours);
  EXPECT_EQ(ours->state(), SessionState::kAccepted);
  EXPECT_EQ(ours->private_data(), Text("welcome"));
  ours->Attach(at_a);
  ours->SetOpen(true);

  Send(*ours, Numbered(1));
  Send(*ours, Numbered(2));
  Send(*theirs, Numbered(3));
  while (const auto message = a.Take()) b.Get(*message);
  while (const auto message = b.Take()) a.Get(*message);
  EXPECT_EQ(at_b.ulpdus, (std::vector<Bytes>{Numbered(1), Numbered(2)}));
  EXPECT_EQ(at_a.ulpdus, (std::vector<Bytes>{Numbered(3)}));
  EXPECT_EQ(theirs->received(), 60u);

  ours->End();
  b.Get(*a.Take());
  EXPECT_EQ(b.association.TakeNews(), theirs);
  EXPECT_EQ(theirs->state(), SessionState::kEnded);
  Send(*theirs, Numbered(4));  // a half that is open still takes segments
  theirs->End();
  b.AcknowledgeAll();
  while (const auto message = b.Take()) a.Get(*message);
  EXPECT_EQ(at_a.ulpdus.size(), 2u);
  EXPECT_EQ(a.association.TakeNews(), ours);
  EXPECT_EQ(ours->state(), SessionState::kEnded);
  EXPECT_TRUE(ours->over() && theirs->over());
  a.association.Release(*ours);
  b.association.Release(*theirs);
  EXPECT_EQ(a.association.sessions() + b.association.sessions(), 0u);
}

TEST(SessionTest, ARejectionBringsItsPrivateDataAndIsTheEnd) {
  End a({.initiator = true, .streams = 8}), b;
  Session* const ours = a.association.Open({}, false);
  b.Get(*a.Take());
  Session* const theirs = b.association.TakeNews();
  EXPECT_TRUE(theirs->Reject(Text("no")));
  EXPECT_EQ(theirs->state(), SessionState::kRejected);
  EXPECT_FALSE(theirs->over());
  a.Get(*b.Take());
  EXPECT_TRUE(theirs->over());
  EXPECT_EQ(a.association.TakeNews(), ours);
  EXPECT_EQ(ours->state(), SessionState::kRejected);
  EXPECT_EQ(ours->private_data(), Text("no"));
  EXPECT_TRUE(ours->over());
  ours->End();
  theirs->End();
  EXPECT_FALSE(a.Take() || b.Take());
}

TEST(SessionTest, WhatFollowsARejectionChangesNothing) {
  for (const Kind answer : {Kind::kReject, Kind::kTerminate}) {
    End a({.initiator = true, .streams = 8});
    Session* const ours = a.association.Open({}, false);
    a.Take();
    a.Get(Make(0, answer, 0));
    const SessionState state = ours->state();
    a.Get(Make(0, Kind::kTerminate, 1));
    a.Get(Segment(0, 2));
    EXPECT_EQ(ours->state(), state);
    EXPECT_FALSE(a.Take());
    a.association.Release(*ours);
    EXPECT_EQ(a.association.sessions(), 0u);
  }
}

TEST(SessionTest, ARequestThatItsUserGivesUpIsRefused) {
  End a({.initiator = true, .streams = 8}), b;
  Session* const ours = a.association.Open({}, false);
  b.Get(*a.Take());
  b.association.Release(*b.association.TakeNews());
  a.Get(*b.Take());
  EXPECT_EQ(b.association.sessions(), 0u);
  EXPECT_EQ(a.association.TakeNews(), ours);
  EXPECT_EQ(ours->state(), SessionState::kRefused);
  EXPECT_TRUE(ours->over());
}

TEST(SessionTest, PrivateDataHasALimit) {
  End a({.initiator = true, .streams = 8}), b;
  EXPECT_EQ(a.association.Open(Bytes(513), false), nullptr);
  ASSERT_NE(a.association.Open(Bytes(512), false), nullptr);
  b.Get(*a.Take());
  Session* const theirs = b.association.TakeNews();
  EXPECT_EQ(theirs->private_data().size(), 512u);
  EXPECT_FALSE(theirs->Accept(Bytes(513)));
  EXPECT_FALSE(theirs->Reject(Bytes(513)));
  EXPECT_EQ(theirs->state(), SessionState::kRequested);
  EXPECT_TRUE(theirs->Accept(Bytes(512)));
  EXPECT_FALSE(theirs->Accept({}));
  EXPECT_FALSE(theirs->Reject({}));
}

TEST(SessionTest, AnAcceptThatComesAfterItsSegmentsIsLookedAtFirst) {
  End a({.initiator = true, .streams = 8});
  RecordingSink sink;
  Session* const ours = a.association.Open({}, false);
  a.Take();
  a.Get(Segment(0, 2, Numbered(2)));
  a.Get(Segment(0, 1, Numbered(1)));
  EXPECT_EQ(ours->state(), SessionState::kInitiated);
  EXPECT_TRUE(ours->has_gap());
  a.Get(Make(0, Kind::kAccept, 0, Text("yes")));
  EXPECT_EQ(ours->state(), SessionState::kAccepted);
  EXPECT_EQ(a.association.TakeNews(), ours);
  EXPECT_TRUE(ours->deliverable());  // nobody has given it a sink yet
  ours->Attach(sink);
  EXPECT_EQ(ours->Deliver(100), 2u);
  EXPECT_EQ(sink.ulpdus, (std::vector<Bytes>{Numbered(1), Numbered(2)}));
}

TEST(SessionTest, AnAnswerToAnInitiateThatIsNotOutIsIllegal) {
  for (const Kind kind : {Kind::kAccept, Kind::kReject, Kind::kTerminate, Kind::kSegment}) {
    End a({.initiator = true, .streams = 8});
    Session* const ours = a.association.Open({}, false);
    a.Get(Make(0, kind, kind == Kind::kSegment ? 1 : 0, kind == Kind::kSegment ? Bytes(20) : Bytes()));
    EXPECT_EQ(ours->state(), SessionState::kFailed);
    EXPECT_EQ(a.TakeAll(), Lines{"0: DDP Terminate SSN=0 private data=0"});
    EXPECT_TRUE(ours->over());
  }
}

TEST(SessionTest, ASecondAcceptThatCameFirstWaitsItsTurnAndIsIllegalThen) {
  End a({.initiator = true, .streams = 8});
  Session* const ours = a.association.Open({}, false);
  a.Take();
  a.Get(Make(0, Kind::kAccept, 1, Bytes(500, 9)));
  EXPECT_EQ(ours->state(), SessionState::kInitiated);
  a.Get(Make(0, Kind::kAccept, 0, Bytes(500, 8)));
  EXPECT_EQ(ours->state(), SessionState::kFailed);
  EXPECT_EQ(ours->private_data(), Bytes(500, 8));
  EXPECT_EQ(ours->why(), "the peer sent an unexpected Accept while accepted");
}

TEST(SessionTest, ARequestThatLeavesBeforeItsAnswerIsTold) {
  End b;
  b.Get(Make(3, Kind::kInitiate, 0));
  Session* const theirs = b.association.TakeNews();
  b.Get(Make(3, Kind::kTerminate, 1));
  EXPECT_EQ(b.association.TakeNews(), theirs);
  EXPECT_EQ(theirs->state(), SessionState::kEnded);
  EXPECT_FALSE(theirs->Accept({}));
  EXPECT_EQ(b.TakeAll(), Lines{"3: DDP Terminate SSN=0 private data=0"});
  EXPECT_TRUE(theirs->over());
}

// --- giving up ---

TEST(SessionTest, AnInitiateThatIsNotOutIsWithdrawnWithoutAWord) {
  End a;
  Session* const ours = a.association.Open({}, false);
  ours->End();
  EXPECT_TRUE(ours->over());
  EXPECT_FALSE(a.Take());
  a.association.Release(*ours);
  EXPECT_EQ(a.association.sessions(), 0u);
}

TEST(SessionTest, WhoGivesUpWaitsUntilItsInitiateIsThere) {
  for (const bool answered : {false, true}) {
    End a({.initiator = true, .streams = 8});
    a.association.Release(*a.association.Open({}, false));
    EXPECT_EQ(a.association.sessions(), 0u);
    Session* const ours = a.association.Open({}, false);
    a.Take();
    a.association.Release(*ours);
    EXPECT_FALSE(a.Take());  // it could overtake the Initiate
    const uint16_t stream = ours->stream();
    answered ? a.Get(Make(stream, Kind::kAccept, 0)) : a.AcknowledgeAll();
    const auto last = a.Take();
    ASSERT_TRUE(last);
    EXPECT_EQ(last->ToString(), std::to_string(stream) + ": DDP Terminate SSN=1 private data=0");
    EXPECT_EQ(a.association.sessions(), 1u);
    a.Get(Make(stream, Kind::kTerminate, answered ? 1 : 0));
    EXPECT_EQ(a.association.sessions(), 0u);
  }
}

TEST(SessionTest, WhoGaveUpAndIsRejectedSaysNothingMore) {
  End a;
  Session* const ours = a.association.Open({}, false);
  a.Take();
  const uint16_t stream = ours->stream();
  a.association.Release(*ours);
  a.Get(Make(stream, Kind::kReject, 0));
  EXPECT_FALSE(a.Take());
  EXPECT_EQ(a.association.sessions(), 0u);
}

TEST(SessionTest, APassiveEndWaitsUntilItsAcceptIsThere) {
  enum class Sign { kNone, kAcknowledged, kSegment, kSegmentOfOneThatWaits };
  for (const Sign sign : {Sign::kNone, Sign::kAcknowledged, Sign::kSegment, Sign::kSegmentOfOneThatWaits}) {
    SCOPED_TRACE(static_cast<int>(sign));
    End b;
    RecordingSink sink;
    b.Get(Make(2, Kind::kInitiate, 0));
    Session* const theirs = b.association.TakeNews();
    theirs->Accept({});
    theirs->Attach(sink);
    theirs->SetOpen(true);
    EXPECT_TRUE(b.Take());
    theirs->End();
    EXPECT_FALSE(b.Take());
    if (sign == Sign::kAcknowledged) b.AcknowledgeAll();
    if (sign == Sign::kSegmentOfOneThatWaits) theirs->AssumePeerWaits();
    if (sign == Sign::kSegment || sign == Sign::kSegmentOfOneThatWaits) b.Get(Segment(2, 1));
    EXPECT_EQ(b.Take().has_value(), sign == Sign::kAcknowledged || sign == Sign::kSegmentOfOneThatWaits);
    b.AcknowledgeAll();
    b.Take();
    EXPECT_TRUE(theirs->output_over());
  }
}

TEST(SessionTest, AbortForgetsWhatWaitsAndLeavesNoGapInTheSsns) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  for (uint8_t i = 0; i < 5; ++i) Send(session, Numbered(i));
  EXPECT_EQ(b.Take()->ToString(), "1: DDP Segment SSN=1 segment=30");
  session.Abort();
  EXPECT_FALSE(session.HasRoom(0, 0));
  EXPECT_EQ(b.TakeAll(), Lines{"1: DDP Terminate SSN=2 private data=0"});
  EXPECT_EQ(session.appended(), session.consumed());
}

// --- order ---

TEST(SessionTest, SegmentsThatComeInAnyOrderAreHandedOnInTheirs) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  for (uint16_t ssn : {3, 2, 5}) b.Get(Segment(1, ssn, Numbered(static_cast<uint8_t>(ssn), 700)));
  EXPECT_TRUE(sink.ulpdus.empty());
  EXPECT_TRUE(session.has_gap());
  EXPECT_EQ(session.held(), 3u);
  b.Get(Segment(1, 1, Numbered(1, 700)));
  EXPECT_EQ(sink.ulpdus.size(), 3u);
  b.Get(Make(1, Kind::kTerminate, 6));
  EXPECT_EQ(session.state(), SessionState::kAccepted);
  b.Get(Segment(1, 4, Numbered(4, 700)));
  EXPECT_EQ(session.state(), SessionState::kEnded);
  for (uint8_t i = 0; i < 5; ++i) EXPECT_EQ(sink.ulpdus[i], Numbered(i + 1, 700));
  EXPECT_EQ(b.association.held_bytes(), 0u);
}

TEST(SessionTest, SsnsWrap) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  for (uint32_t ssn = 1; ssn < 140'000; ssn += 2) {
    b.Get(Segment(1, static_cast<uint16_t>(ssn + 1), Numbered(2)));
    b.Get(Segment(1, static_cast<uint16_t>(ssn), Numbered(1)));
    ASSERT_EQ(session.state(), SessionState::kAccepted);
  }
  EXPECT_EQ(sink.ulpdus.size(), 140'000u);
}

TEST(SessionTest, AClosedSessionHoldsWhatComesUntilItDelivers) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  session.SetOpen(false);
  while (b.association.TakeNews()) {
  }
  for (uint16_t ssn = 1; ssn <= 6; ++ssn) b.Get(Segment(1, ssn, Numbered(static_cast<uint8_t>(ssn))));
  b.Get(Make(1, Kind::kTerminate, 7));
  EXPECT_TRUE(sink.ulpdus.empty());
  EXPECT_EQ(b.association.TakeNews(), &session);
  EXPECT_EQ(b.association.TakeNews(), nullptr);
  EXPECT_EQ(session.Deliver(4), 4u);
  EXPECT_TRUE(session.deliverable());
  EXPECT_EQ(session.state(), SessionState::kAccepted);
  EXPECT_EQ(session.Deliver(100), 3u);
  EXPECT_FALSE(session.deliverable());
  EXPECT_EQ(session.state(), SessionState::kEnded);
  EXPECT_EQ(sink.ulpdus.size(), 6u);
}

TEST(SessionTest, ASinkThatRefusesGetsNothingMoreAndTheOrderIsStillFollowed) {
  End b;
  RecordingSink sink;
  sink.refuse_at = 1;
  Session& session = b.Accepted(1, sink);
  b.Get(Segment(1, 3, Bytes(5000)));
  b.Get(Segment(1, 1));
  EXPECT_EQ(b.association.held_bytes(), 5120u);
  b.Get(Segment(1, 2));
  EXPECT_TRUE(session.stopped());
  EXPECT_EQ(sink.ulpdus.size(), 1u);
  EXPECT_EQ(b.association.held_bytes(), 0u);
  b.Get(Segment(1, 6, Bytes(60000)));
  EXPECT_EQ(b.association.held_bytes(), 256u);  // its place, not its bytes
  b.Get(Make(1, Kind::kTerminate, 7));
  b.Get(Segment(1, 5));
  b.Get(Segment(1, 4));
  EXPECT_EQ(session.state(), SessionState::kEnded);
  Send(session, Numbered(1));  // last words
  session.End();
  EXPECT_EQ(b.TakeAll().size(), 2u);
  EXPECT_TRUE(session.over());
}

TEST(SessionTest, WhatIsHeldForASinkThatRefusesIsGivenUp) {
  for (const bool released : {false, true}) {
    End b;
    RecordingSink sink;
    sink.refuse_at = 0;
    Session& session = b.Accepted(1, sink);
    for (uint16_t ssn : {3, 4, 5}) b.Get(Segment(1, ssn, Bytes(10'000)));
    EXPECT_EQ(b.association.held_bytes(), 3 * 10'240u);
    released ? b.association.Release(session) : b.Get(Segment(1, 1));
    EXPECT_EQ(b.association.held_bytes(), 3 * 256u);
    b.Get(Segment(1, 2));
    if (released) b.Get(Segment(1, 1));
    EXPECT_EQ(b.association.held_bytes(), 0u);
    EXPECT_TRUE(sink.ulpdus.empty());
    b.Get(Make(1, Kind::kTerminate, 6));
    if (released) {
      b.Take();
      EXPECT_EQ(b.association.sessions(), 0u);
    } else {
      EXPECT_EQ(session.state(), SessionState::kEnded);
    }
  }
}

TEST(SessionTest, TheSinkMaySendAndEndFromWithin) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  sink.on_begin = [&] {
    if (session.ending()) return;
    Send(session, Numbered(9));
    session.End();
  };
  b.Get(Segment(1, 1));
  EXPECT_EQ(b.TakeAll(), (Lines{"1: DDP Segment SSN=1 segment=30", "1: DDP Terminate SSN=2 private data=0"}));
  b.Get(Segment(1, 2));
  EXPECT_EQ(sink.ulpdus.size(), 2u);
}

// --- positions ---

TEST(SessionTest, PositionsSayWhichUlpdusAreOut) {
  End b;
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  EXPECT_EQ(session.appended(), 0u);
  Send(session, Numbered(1, 100));
  const uint64_t first = session.appended();
  Send(session, Numbered(2, 200));
  EXPECT_EQ(first, 102u);
  EXPECT_EQ(session.appended(), 304u);
  EXPECT_TRUE(b.TakeOf(session));
  EXPECT_EQ(session.consumed(), first);
  EXPECT_FALSE(session.empty());
  EXPECT_TRUE(b.TakeOf(session));
  EXPECT_EQ(session.consumed(), session.appended());
  EXPECT_TRUE(session.empty());
  EXPECT_FALSE(b.TakeOf(session));
}

TEST(SessionTest, NoMoreThanThatManyAreUnacknowledged) {
  End b({.streams = 8, .most_unacknowledged = 5});
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  size_t out = 0;
  for (int i = 0; i < 12; ++i) Send(session, Numbered(1));
  while (b.TakeOf(session)) ++out;
  EXPECT_EQ(out, 5u);
  EXPECT_FALSE(b.Take());
  b.association.OnAcknowledged(b.association.taken() - 1);
  EXPECT_FALSE(b.Take() && b.Take() && b.Take() && b.Take() &&
               b.Take());  // a bound that is known may be above the truth
  b.AcknowledgeAll();
  size_t more = 0;
  while (b.Take()) {
    ++more;
    b.AcknowledgeAll();
  }
  EXPECT_GE(more, 3u);
  EXPECT_TRUE(session.empty());
}

}  // namespace
}  // namespace weft::ddp::sctp
