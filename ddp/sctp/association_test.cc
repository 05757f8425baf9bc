// Many sessions on one association: who gets which stream, and what is said to whom when there is no session.
#include "ddp/sctp/association.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/program_memory.h"
#include "ddp/sctp/testing/end.h"

namespace weft::ddp::sctp {
namespace {

using testing::Bytes;
using testing::End;
using testing::Make;
using testing::RecordingSink;
using testing::Segment;
using testing::Send;
using Kind = Chunk::Kind;
using Lines = std::vector<std::string>;

std::string TerminateOn(uint16_t stream, int ssn = 0) {
  return std::to_string(stream) + ": DDP Terminate SSN=" + std::to_string(ssn) + " private data=0";
}

TEST(AssociationTest, EachEndTakesStreamsOfItsOwnFirst) {
  End a({.initiator = true, .streams = 6}), b({.initiator = false, .streams = 6});
  std::vector<int> of_a, of_b;
  for (int i = 0; i < 6; ++i) {
    of_a.push_back(a.association.Open({}, false)->stream());
    of_b.push_back(b.association.Open({}, false)->stream());
  }
  EXPECT_EQ(of_a, (std::vector<int>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(of_b, (std::vector<int>{1, 3, 5, 0, 2, 4}));
  EXPECT_EQ(a.association.Open({}, false), nullptr);
}

TEST(AssociationTest, AllStreamsThereAreCanBeUsed) {
  End a({.initiator = true, .streams = 65536});
  std::set<uint16_t> streams;
  for (int i = 0; i < 65536; ++i) {
    Session* const session = a.association.Open({}, false);
    ASSERT_NE(session, nullptr);
    streams.insert(session->stream());
  }
  EXPECT_EQ(streams.size(), 65536u);
  EXPECT_EQ(a.association.Open({}, false), nullptr);
}

TEST(AssociationTest, AStreamIsTakenAgainOnlyWhenNothingOfTheFormerSessionIsOnTheWay) {
  End a({.initiator = true, .streams = 1});
  RecordingSink sink;
  Session* session = a.association.Open({}, false);
  a.Take();
  a.Get(Make(0, Kind::kAccept, 0));
  session->Attach(sink);
  a.association.Release(*session);
  EXPECT_EQ(a.TakeAll(), Lines{TerminateOn(0, 1)});
  EXPECT_EQ(a.association.Open({}, false), nullptr);  // the peer may still send
  a.Get(Make(0, Kind::kTerminate, 1));
  EXPECT_EQ(a.association.sessions(), 0u);
  EXPECT_EQ(a.association.Open({}, false), nullptr);  // our Terminate may still be on the way
  a.AcknowledgeAll();
  session = a.association.Open({}, false);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(a.TakeAll(), Lines{"0: DDP Initiate SSN=0 private data=0"});
}

TEST(AssociationTest, AnAnswerThatIsTheEndFreesTheStreamAtOnce) {
  for (const Kind kind : {Kind::kReject, Kind::kTerminate}) {
    End a({.initiator = true, .streams = 1});
    Session* const session = a.association.Open({}, false);
    a.Take();
    a.Get(Make(0, kind, 0));
    a.association.Release(*session);
    EXPECT_NE(a.association.Open({}, false), nullptr);
  }
}

TEST(AssociationTest, ThePeerMayBeginAnewOnAStreamOnWhichItOnlyKnowsThatAllIsOver) {
  // Section 6.2: one Terminate is enough. It was ours; the peer's next word there is an Initiate.
  End b;
  RecordingSink first_sink, second_sink;
  Session& first = b.Accepted(3, first_sink);
  b.Get(Segment(3, 1));
  first.End();
  EXPECT_EQ(b.TakeAll(), Lines{TerminateOn(3, 1)});
  while (b.association.TakeNews()) {
  }
  b.Get(Make(3, Kind::kInitiate, 0, {7}));
  EXPECT_EQ(b.association.TakeNews(), &first);
  EXPECT_EQ(first.state(), SessionState::kEnded);
  EXPECT_TRUE(first.over());
  Session* const second = b.association.TakeNews();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->private_data(), Bytes{7});
  second->Accept({});
  second->Attach(second_sink);
  second->SetOpen(true);
  b.Get(Segment(3, 1));
  EXPECT_EQ(first_sink.ulpdus.size(), 1u);
  EXPECT_EQ(second_sink.ulpdus.size(), 1u);
  b.association.Release(first);
  EXPECT_EQ(second->state(), SessionState::kAccepted);
  EXPECT_EQ(b.association.sessions(), 1u);
}

TEST(AssociationTest, WhatIsHereIsDeliveredThoughThePeerHasBegunAnewOrTheAssociationIsGone) {
  for (const bool gone : {false, true}) {
    for (const bool terminated : {false, true}) {
      End b;
      RecordingSink sink;
      Session& session = b.Accepted(3, sink);
      session.SetOpen(false);
      session.End();
      EXPECT_EQ(b.TakeAll().size(), 1u);
      b.Get(Segment(3, 1));
      b.Get(Segment(3, 2));
      if (terminated) b.Get(Make(3, Kind::kTerminate, 3));
      gone ? b.association.OnLost() : b.Get(Make(3, Kind::kInitiate, 0));
      EXPECT_EQ(session.state(), SessionState::kAccepted);
      EXPECT_FALSE(session.over());
      session.Deliver(1);
      EXPECT_EQ(session.state(), SessionState::kAccepted);
      session.Deliver(10);
      EXPECT_EQ(sink.ulpdus.size(), 2u);
      EXPECT_EQ(session.state(), gone && !terminated ? SessionState::kLost : SessionState::kEnded);
      EXPECT_TRUE(session.over());
      b.association.Release(session);
      EXPECT_EQ(b.association.held_bytes(), 0u);
    }
  }
}

TEST(AssociationTest, APeerThatEndedItsDirectionAndIsGoneHasEnded) {
  // A process that has said Terminate owes nothing: that its association goes with it is no loss, whatever we had to say.
  for (const bool broke_rules : {false, true}) {
    End b;
    RecordingSink sink;
    Session& session = b.Accepted(3, sink);
    b.Get(broke_rules ? Make(3, Kind::kInitiate, 1) : Make(3, Kind::kTerminate, 1));
    const SessionState before = session.state();
    EXPECT_EQ(before, broke_rules ? SessionState::kFailed : SessionState::kEnded);
    Send(session, Bytes(20));
    while (b.association.TakeNews()) {
    }
    b.association.OnLost();
    EXPECT_EQ(b.association.TakeNews(), &session);
    EXPECT_EQ(session.state(), before);
    EXPECT_TRUE(session.over());
    EXPECT_FALSE(b.Take());
    b.association.Release(session);
    EXPECT_EQ(b.association.sessions(), 0u);
  }
}

TEST(AssociationTest, RequestsBeyondTheLimitAreAnsweredWithATerminate) {
  End b({.streams = 100, .most_requests = 3});
  for (uint16_t stream = 0; stream < 5; ++stream) b.Get(Make(stream, Kind::kInitiate, 0));
  EXPECT_EQ(b.TakeAll(), (Lines{TerminateOn(3), TerminateOn(4)}));
  EXPECT_EQ(b.association.requests(), 3u);
  EXPECT_EQ(b.association.counters().refused, 2u);
  Session* const first = b.association.TakeNews();
  first->Accept({});
  b.Get(Make(4, Kind::kInitiate, 0));  // there is room again
  EXPECT_EQ(b.association.requests(), 3u);
  EXPECT_EQ(b.TakeAll(), Lines{"0: DDP Accept SSN=0 private data=0"});
}

TEST(AssociationTest, WhatComesOfAnUnknownSessionIsAnsweredOnce) {
  End b;
  for (int i = 0; i < 1000; ++i) b.Get(Segment(5, static_cast<uint16_t>(i)));
  b.Get(Make(6, Kind::kAccept, 0));
  b.Get(Make(6, Kind::kReject, 0));
  b.Get({.stream = 7, .ppid = 99, .bytes = {1, 2, 3}});
  b.Get(Make(4, Kind::kTerminate, 9));  // of a session that is over for us: nothing to say
  EXPECT_EQ(b.TakeAll(), (Lines{TerminateOn(5), TerminateOn(6), TerminateOn(7)}));
  b.Get(Segment(5, 1));
  EXPECT_TRUE(b.TakeAll().empty());
  // Whether that Terminate passed for the answer of the next Initiate is not known: it gets one for certain.
  b.Get(Make(5, Kind::kInitiate, 0));
  EXPECT_EQ(b.association.TakeNews(), nullptr);
  EXPECT_EQ(b.TakeAll(), Lines{TerminateOn(5)});
  b.Get(Make(5, Kind::kInitiate, 0));
  EXPECT_NE(b.association.TakeNews(), nullptr);
}

TEST(AssociationTest, AStreamThatWeDoNotHaveIsNotAnswered) {
  End b({.streams = 4});
  b.Get(Segment(4, 0));
  b.Get(Make(65535, Kind::kInitiate, 0));
  EXPECT_TRUE(b.TakeAll().empty());
  EXPECT_EQ(b.association.resting_streams(), 0u);
}

TEST(AssociationTest, InitiatesThatMeetOnAStreamEndBothSessions) {
  End a({.initiator = true, .streams = 1}), b({.initiator = false, .streams = 1});
  Session* const of_a = a.association.Open({}, false);
  Session* const of_b = b.association.Open({}, false);
  const auto from_a = a.Take(), from_b = b.Take();
  a.Get(*from_b);
  b.Get(*from_a);
  EXPECT_EQ(of_a->state(), SessionState::kFailed);
  EXPECT_EQ(of_b->state(), SessionState::kFailed);
  a.AcknowledgeAll();
  b.AcknowledgeAll();
  EXPECT_EQ(a.TakeAll(), Lines{TerminateOn(0, 1)});
  EXPECT_EQ(b.TakeAll(), Lines{TerminateOn(0, 1)});
  EXPECT_TRUE(of_a->over() && of_b->over());
}

TEST(AssociationTest, AnInitiateThatMeetsOneThatIsNotOutIsAnswered) {
  End a({.initiator = true, .streams = 1});
  Session* const ours = a.association.Open({}, false);
  a.Get(Make(0, Kind::kInitiate, 0));
  EXPECT_EQ(ours->state(), SessionState::kFailed);
  EXPECT_EQ(a.TakeAll(), Lines{TerminateOn(0)});
  EXPECT_TRUE(ours->over());
}

TEST(AssociationTest, SessionsTakeTurns) {
  End b;
  RecordingSink sink;
  Session& first = b.Accepted(1, sink);
  Session& second = b.Accepted(2, sink);
  for (int i = 0; i < 3; ++i) Send(first, Bytes(20));
  for (int i = 0; i < 2; ++i) Send(second, Bytes(20));
  std::string order;
  while (const auto message = b.Take()) order += std::to_string(message->stream);
  EXPECT_EQ(order, "12121");
}

// The program may have taken back what it had sent from; on its own threads that is the program's own fault.
TEST(AssociationTest, AThreadOfWeftSendsACopyAndEndsOnlyTheSessionWhosePayloadIsGone) {
  constexpr size_t kLength = 30000, kHole = 65536;
  End b({.streams = 4, .max_segment = kLongestSegment});
  RecordingSink one, two;
  Session& stays = b.Accepted(0, one);
  Session& loses = b.Accepted(2, two);
  const Bytes first(kLength, 1), second(kLength, 2);
  iovec pieces[] = {{const_cast<uint8_t*>(first.data()), kLength}, {const_cast<uint8_t*>(second.data()), kLength}};
  void* const gone = mmap(nullptr, kHole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  const iovec hole{gone, kLength};
  const Bytes header(14, 7);
  loses.Append(header, {&hole, 1}, /*volatile_payload=*/false);
  stays.Append(header, pieces, /*volatile_payload=*/false);
  ASSERT_EQ(mprotect(gone, kHole, PROT_NONE), 0);  // a hole could be filled by another mapping

  std::vector<testing::Message> sent;
  std::thread([&] {
    SetThreadOfOurs();
    Outgoing outgoing;
    while (b.association.Next(&outgoing)) {
      for (const iovec& piece : outgoing.pieces) {
        EXPECT_NE(piece.iov_base, first.data());
        EXPECT_NE(piece.iov_base, second.data());
      }
      sent.push_back(b.Take(outgoing));
    }
  }).join();
  EXPECT_TRUE(loses.payload_gone());
  EXPECT_FALSE(stays.payload_gone());
  ASSERT_EQ(sent.size(), 1u);
  Bytes all = header;
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  EXPECT_EQ(sent[0].bytes, Segment(0, 1, all).bytes);
  munmap(gone, kHole);
}

TEST(AssociationTest, WhenItIsLostEverybodyHears) {
  End b;
  RecordingSink sink;
  Session& open = b.Accepted(1, sink);
  b.Get(Make(2, Kind::kInitiate, 0));
  Session* const asking = b.association.Open({}, false);
  Session& orphan = b.Accepted(4, sink);
  b.association.Release(orphan);
  std::set<Session*> told;
  while (b.association.TakeNews()) {
  }
  b.association.OnLost();
  while (Session* const session = b.association.TakeNews()) told.insert(session);
  EXPECT_EQ(told.size(), 3u);
  EXPECT_EQ(open.state(), SessionState::kLost);
  EXPECT_EQ(asking->state(), SessionState::kLost);
  EXPECT_FALSE(open.HasRoom(0, 0));
  EXPECT_FALSE(b.Take());
  b.Get(Segment(1, 1));
  EXPECT_TRUE(sink.ulpdus.empty());
  EXPECT_EQ(b.association.Open({}, false), nullptr);
  for (Session* session : told) b.association.Release(*session);
  EXPECT_EQ(b.association.sessions(), 0u);
}

TEST(AssociationTest, ASessionThatKeepsItsUserWaitingSlowsThePeerDownInsteadOfFailing) {
  End b({.streams = 8, .most_held_bytes = 300'000});
  RecordingSink sink;
  Session& session = b.Accepted(1, sink);
  session.SetOpen(false);
  uint16_t ssn = 1;
  while (b.association.HasRoom()) b.Get(Segment(1, ssn++, Bytes(10'000)));
  EXPECT_EQ(session.state(), SessionState::kAccepted);
  EXPECT_GE(ssn, 20);
  session.Deliver(1000);
  EXPECT_TRUE(b.association.HasRoom());
  EXPECT_EQ(sink.ulpdus.size(), ssn - 1u);
}

TEST(AssociationTest, WhatWaitsForItsOwnUserIsNotTheOneThatEnds) {
  End b({.streams = 8, .most_held_bytes = 1});
  RecordingSink sink, gap_sink;
  Session& waiting = b.Accepted(1, sink);
  Session& gap = b.Accepted(2, gap_sink);
  waiting.SetOpen(false);
  for (uint16_t ssn = 1; ssn <= 90; ++ssn) b.Get(Segment(1, ssn, Bytes(1000)));
  for (uint16_t ssn = 2; gap.state() == SessionState::kAccepted; ++ssn) b.Get(Segment(2, ssn, Bytes(1000)));
  EXPECT_EQ(gap.error(), SessionError::kWindowFull);
  EXPECT_EQ(waiting.Deliver(100), 90u);

  // Nor when it is another's message that finds no room.
  Session& small = b.Accepted(3, gap_sink);
  Session& large = b.Accepted(4, gap_sink);
  for (uint16_t ssn = 91; ssn <= 180; ++ssn) b.Get(Segment(1, ssn, Bytes(1000)));
  for (uint16_t ssn = 2; b.association.held_bytes() < 159'000; ++ssn) b.Get(Segment(4, ssn, Bytes(1000)));
  b.Get(Segment(3, 2, Bytes(20'000)));
  EXPECT_EQ(large.state(), SessionState::kFailed);
  EXPECT_EQ(small.state(), SessionState::kAccepted);
  EXPECT_EQ(waiting.state(), SessionState::kAccepted);
}

// Of many associations that hold messages for gaps that never fill: a bound over all, and one with a gap that fills has room.
TEST(AssociationTest, GapsOfManyAssociationsLeaveRoomForOneThatFills) {
  constexpr size_t kBlocks = 64, kMany = 100;
  HeldBudget budget(kBlocks);
  std::vector<std::unique_ptr<End>> strangers;
  RecordingSink none;
  Session* last = nullptr;
  uint16_t ssn = 2;
  for (size_t i = 0; i < kMany; ++i) {
    strangers.push_back(std::make_unique<End>(AssociationOptions{.streams = 8, .held_budget = &budget}));
    End& stranger = *strangers.back();
    last = &stranger.Accepted(1, none);
    const auto blocks = [&] { return (stranger.association.held_bytes() + BufferPool::kBlockSize - 1) / BufferPool::kBlockSize; };
    for (ssn = 2; budget.Allows(blocks()) && ssn < 1000; ++ssn) stranger.Get(Segment(1, ssn, Bytes(4000)));
    EXPECT_EQ(last->state(), SessionState::kAccepted);
  }
  EXPECT_LE(budget.taken(), kBlocks + kMany * HeldBudget::kOwn);
  for (; last->state() == SessionState::kAccepted && ssn < 1000; ++ssn) strangers.back()->Get(Segment(1, ssn, Bytes(4000)));
  EXPECT_EQ(last->error(), SessionError::kWindowFull) << "one that wants more ends";
  End honest({.streams = 8, .held_budget = &budget});
  RecordingSink sink;
  Session& session = honest.Accepted(1, sink);
  for (uint16_t ssn = 2; ssn < 60; ++ssn) honest.Get(Segment(1, ssn, Bytes(4000)));
  honest.Get(Segment(1, 1, Bytes(4000)));
  EXPECT_EQ(session.state(), SessionState::kAccepted);
  EXPECT_EQ(sink.ulpdus.size(), 59u);
}

TEST(AssociationTest, WhoHoldsMostEndsWhenThereIsNoRoom) {
  End b({.streams = 8, .most_held_bytes = 1});
  RecordingSink sink;
  Session& greedy = b.Accepted(1, sink);
  Session& modest = b.Accepted(2, sink);
  b.Get(Segment(2, 2, Bytes(1000)));
  uint16_t ssn = 2;
  while (b.association.held_bytes() < 159'000) b.Get(Segment(1, ssn++, Bytes(1000)));
  b.Get(Segment(2, 3, Bytes(10'000)));
  EXPECT_EQ(greedy.state(), SessionState::kFailed);
  EXPECT_EQ(greedy.error(), SessionError::kWindowFull);
  EXPECT_EQ(modest.state(), SessionState::kAccepted);
  EXPECT_EQ(modest.held(), 2u);
  b.Get(Segment(2, 1));
  EXPECT_EQ(sink.ulpdus.size(), 3u);
}

}  // namespace
}  // namespace weft::ddp::sctp
