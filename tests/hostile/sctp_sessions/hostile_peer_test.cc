// A peer that is at the other end of an SCTP association rightly, and sends what it likes: its session ends, the
// session beside it never notices, and what it costs us in memory has a bound.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "ddp/sctp/association.h"
#include "ddp/sctp/testing/end.h"
#include "ddp/sctp/testing/legal_output.h"

// Bytes that are allocated now.
static size_t g_allocated = 0;

void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  g_allocated += malloc_usable_size(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) g_allocated -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace weft::ddp::sctp {
namespace {

using testing::Bytes;
using testing::End;
using testing::LegalOutput;
using testing::Make;
using testing::Message;
using testing::RecordingSink;
using testing::Segment;
using Kind = Chunk::Kind;

// Bytes that a stream without a session may cost.
constexpr size_t kPerStream = 120;

constexpr uint16_t kGood = 0, kBad = 1;  // streams

// The victim: a session with a peer that behaves, one with the stranger, both accepted, and a listener on every stream.
class HostilePeerTest : public ::testing::Test {
 protected:
  explicit HostilePeerTest(AssociationOptions options = {.streams = 65536, .most_requests = 128})
      : end_(options), good_(end_.Accepted(kGood, good_sink_)), bad_(end_.Accepted(kBad, bad_sink_)) {
    while (end_.association.TakeNews()) {
    }
    before_ = g_allocated;
  }

  ~HostilePeerTest() override {
    // The good one still works, both ways, and out of what went to both came nothing illegal.
    EXPECT_EQ(good_.state(), SessionState::kAccepted);
    GoodSegment();
    EXPECT_EQ(good_sink_.ulpdus.size(), good_sent_);
    testing::Send(good_, Bytes(20));
    bool out = false;
    while (const auto message = Take()) out |= message->stream == kGood && message->ppid == kSegmentPpid;
    EXPECT_TRUE(out);
    EXPECT_EQ(bad_sink_.ulpdus.size(), bad_delivered_);
  }

  void GoodSegment() {
    end_.Get(Segment(kGood, static_cast<uint16_t>(++good_sent_)));
    good_sink_.ulpdus.shrink_to_fit();
  }
  void GetRaw(uint32_t ppid, Bytes bytes) { end_.Get({.stream = kBad, .ppid = ppid, .bytes = std::move(bytes)}); }

  std::optional<Message> Take() {
    auto message = end_.Take();
    if (message) {
      EXPECT_EQ(legal_.Check(message->stream, message->ppid, message->bytes), "");
    }
    return message;
  }

  // The user has last words, as an RDMAP stream has, and goes; the peer never answers the Terminate.
  void ExpectEnded(SessionError error) {
    EXPECT_EQ(end_.association.TakeNews(), &bad_);
    ASSERT_EQ(bad_.state(), SessionState::kFailed);
    EXPECT_EQ(bad_.error(), error);
    EXPECT_FALSE(bad_.why().empty());
    testing::Send(bad_, Bytes(30, 9));
    bad_.End();
    std::vector<std::string> sent;
    while (const auto message = end_.Take()) sent.push_back(message->ToString());
    EXPECT_EQ(sent,
              (std::vector<std::string>{"1: DDP Segment SSN=1 segment=30", "1: DDP Terminate SSN=2 private data=0"}));
    end_.association.Release(bad_);
    EXPECT_EQ(end_.association.sessions(), 1u);
    EXPECT_EQ(end_.association.held_bytes(), 0u);
    // What still comes of it gets no answer.
    for (uint16_t ssn = 0; ssn < 1000; ++ssn) end_.Get(Segment(kBad, ssn));
    EXPECT_FALSE(end_.Take());
    // But for the good one's opening, which went before we listened, all was legal; from here on it is looked at.
    legal_ = {};
    legal_.Check(kGood, kControlPpid, testing::Make(kGood, Kind::kAccept, 0).bytes);
  }

  size_t Growth() const { return g_allocated > before_ ? g_allocated - before_ : 0; }

  RecordingSink good_sink_, bad_sink_;
  End end_;
  Session& good_;
  Session& bad_;
  LegalOutput legal_ = [] {
    LegalOutput legal;
    for (uint16_t stream : {kGood, kBad})
      legal.Check(stream, kControlPpid, testing::Make(stream, Kind::kAccept, 0).bytes);
    return legal;
  }();
  size_t good_sent_ = 0, bad_delivered_ = 0;
  size_t before_ = 0;
};

// --- one bad message ---

TEST_F(HostilePeerTest, AnUnknownPayloadProtocolEndsItsSession) {
  GetRaw(18, Bytes(100));
  ExpectEnded(SessionError::kMalformed);
}

TEST_F(HostilePeerTest, MessagesThatAreTooShortEndTheirSession) {
  GetRaw(kControlPpid, Bytes(3));
  ExpectEnded(SessionError::kMalformed);
}

TEST_F(HostilePeerTest, ASegmentOfNothingEndsItsSession) {
  GetRaw(kSegmentPpid, {0, 1});
  ExpectEnded(SessionError::kMalformed);
}

TEST_F(HostilePeerTest, AMessageOfNothingEndsItsSession) {
  GetRaw(kSegmentPpid, {});
  ExpectEnded(SessionError::kMalformed);
}

TEST_F(HostilePeerTest, TooMuchPrivateDataEndsItsSession) {
  end_.Get(Make(kBad, Kind::kAccept, 1, Bytes(513)));
  ExpectEnded(SessionError::kMalformed);
}

TEST_F(HostilePeerTest, AnUnknownFunctionEndsItsSession) {
  GetRaw(kControlPpid, {0, 1, 0, 8});
  ExpectEnded(SessionError::kMalformed);
}

TEST_F(HostilePeerTest, AReplayEndsItsSession) {
  end_.Get(Segment(kBad, 1));
  end_.Get(Segment(kBad, 1));
  bad_delivered_ = 1;
  ExpectEnded(SessionError::kGap);
}

TEST_F(HostilePeerTest, AReplayOfWhatIsHeldEndsItsSession) {
  end_.Get(Segment(kBad, 9));
  end_.Get(Segment(kBad, 9));
  ExpectEnded(SessionError::kReplay);
}

TEST_F(HostilePeerTest, AnSsnThatIsTooFarAheadEndsItsSession) {
  end_.Get(Segment(kBad, 1 + 32766));  // the farthest that there can be
  EXPECT_EQ(bad_.state(), SessionState::kAccepted);
  end_.Get(Segment(kBad, 1 + 32767));
  ExpectEnded(SessionError::kGap);
}

TEST_F(HostilePeerTest, ControlMessagesOutOfStateEndTheirSession) {
  end_.Get(Make(kBad, Kind::kReject, 1));
  ExpectEnded(SessionError::kIllegal);
}

TEST_F(HostilePeerTest, ASecondInitiateEndsTheSessionThatIsThere) {
  end_.Get(Make(kBad, Kind::kInitiate, 1));
  ExpectEnded(SessionError::kIllegal);
}

TEST_F(HostilePeerTest, AnInitiateThatIsPlayedAgainEndsTheSessionThatIsThere) {
  end_.Get(Make(kBad, Kind::kInitiate, 0));
  ExpectEnded(SessionError::kGap);
}

TEST_F(HostilePeerTest, ASegmentBehindTheTerminateEndsTheSession) {
  end_.Get(Segment(kBad, 2));
  end_.Get(Make(kBad, Kind::kTerminate, 1));
  ExpectEnded(SessionError::kIllegal);
}

// --- very many of them ---

TEST_F(HostilePeerTest, GapsThatNeverFillHoldWhatTheyMayAndNoMore) {
  uint16_t ssn = 2;
  size_t most = 0;
  while (bad_.state() == SessionState::kAccepted && ssn < 32760) {
    end_.Get(Segment(kBad, ssn++, Bytes(4000)));
    most = std::max(most, Growth());
    ASSERT_LE(end_.association.held_bytes(), end_.association.options().most_held_bytes + BufferPool::kBlockSize);
    if (ssn % 100 == 0) GoodSegment();
  }
  EXPECT_GT(ssn, 900);
  EXPECT_LE(most, size_t{5} << 20);
  EXPECT_EQ(bad_.position(), 1u);
  ExpectEnded(SessionError::kWindowFull);
}

TEST_F(HostilePeerTest, TinySegmentsAheadOfAGapCostNoMoreThanLongOnes) {
  uint16_t ssn = 2;
  size_t most = 0;
  while (bad_.state() == SessionState::kAccepted && ssn < 32760) {
    end_.Get(Segment(kBad, ssn++, Bytes(1)));
    most = std::max(most, Growth());
  }
  EXPECT_GT(ssn, 16'000);
  EXPECT_LE(most, size_t{8} << 20);
  ExpectEnded(SessionError::kWindowFull);
}

TEST_F(HostilePeerTest, AGapOnEveryStreamIsBoundedAsOneIs) {
  size_t most = 0;
  std::vector<Session*> sessions;
  for (uint32_t stream = 2; stream < 4000; ++stream) {
    end_.Get(Make(static_cast<uint16_t>(stream), Kind::kInitiate, 0));
    Session* session = end_.association.TakeNews();
    while (session != nullptr && session->state() == SessionState::kFailed) session = end_.association.TakeNews();
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->Accept({}));
    sessions.push_back(session);
    for (uint16_t ssn = 2; ssn < 12; ++ssn) end_.Get(Segment(static_cast<uint16_t>(stream), ssn, Bytes(1000)));
    most = std::max(most, Growth());
    while (Take()) {
    }
    end_.AcknowledgeAll();
  }
  EXPECT_LE(most, (size_t{6} << 20) + sessions.size() * 3000);
  for (Session* session : sessions) end_.association.Release(*session);
}

TEST_F(HostilePeerTest, InitiatesOnEveryStreamWaitUpToTheLimitAndAreRefusedThen) {
  for (int round = 0; round < 5; ++round) {
    for (uint32_t stream = 2; stream < 65536; ++stream)
      end_.Get(Make(static_cast<uint16_t>(stream), Kind::kInitiate, 0, Bytes(512)));
    EXPECT_LE(end_.association.requests(), 128u);
    EXPECT_LE(Growth(), size_t{2 * 128} * 3000 + 65536 * kPerStream);
    if (round % 2 == 1) continue;  // nobody takes what there is to say
    size_t answers = 0;
    while (Take()) ++answers;
    EXPECT_GE(answers, 65534u - 2 * 128);
    EXPECT_LE(answers, 65534u);
  }
  EXPECT_LE(end_.association.sessions(), 2u + 2 * 128);
}

TEST_F(HostilePeerTest, TheTurnOfTheGoodOneComesHoweverMuchThereIsToAnswer) {
  for (uint32_t stream = 2; stream < 10'000; ++stream) end_.Get(Segment(static_cast<uint16_t>(stream), 7));
  testing::Send(good_, Bytes(20));
  EXPECT_TRUE(Take()->stream == kGood || Take()->stream == kGood);
}

TEST_F(HostilePeerTest, RequestsThatDieBeforeTheirProgramSawThemDoNotPileUp) {
  for (int i = 0; i < 10'000; ++i) {
    end_.Get(Make(7, Kind::kInitiate, 0, Bytes(512)));
    end_.Get(i % 2 == 0 ? Segment(7, 0) : Make(7, Kind::kTerminate, 1));
    while (Take()) {
    }
  }
  EXPECT_EQ(end_.association.sessions(), 2u);
  EXPECT_EQ(end_.association.requests(), 0u);
  EXPECT_EQ(end_.association.TakeNews(), nullptr);
}

TEST_F(HostilePeerTest, DataOnEveryStreamWithoutASessionIsAnsweredOnce) {
  size_t answers = 0;
  for (int round = 0; round < 4; ++round) {
    for (uint32_t stream = 2; stream < 65536; ++stream) end_.Get(Segment(static_cast<uint16_t>(stream), 7));
    EXPECT_LE(Growth(), size_t{65536} * kPerStream);
    while (Take()) ++answers;
  }
  EXPECT_EQ(answers, 65534u);
  EXPECT_EQ(end_.association.sessions(), 2u);
}

TEST_F(HostilePeerTest, SegmentsBeforeTheAnswerToARequestAreHeldWithinTheBound) {
  end_.Get(Make(7, Kind::kInitiate, 0));
  Session* const session = end_.association.TakeNews();
  uint16_t ssn = 1;
  while (session->state() == SessionState::kRequested && ssn < 32760) {
    end_.Get(Segment(7, ssn++, Bytes(10'000)));
    ASSERT_TRUE(end_.association.HasRoom());  // it does not stop the others
  }
  EXPECT_EQ(session->state(), SessionState::kFailed);
  EXPECT_EQ(session->error(), SessionError::kWindowFull);
  EXPECT_EQ(end_.association.requests(), 0u);
  EXPECT_EQ(Take()->ToString(), "7: DDP Terminate SSN=0 private data=0");
  end_.association.Release(*session);
  EXPECT_EQ(end_.association.sessions(), 2u);
}

TEST_F(HostilePeerTest, SessionsThatAreOpenedAndLeftForEverCostLittle) {
  // Each is accepted, and given up by its program; the peer never says that it is over.
  for (uint32_t stream = 2; stream < 10'002; ++stream) {
    end_.Get(Make(static_cast<uint16_t>(stream), Kind::kInitiate, 0));
    Session* const session = end_.association.TakeNews();
    ASSERT_TRUE(session != nullptr && session->Accept({}));
    testing::Send(*session, Bytes(100));
    while (Take()) {
    }
    end_.AcknowledgeAll();
    end_.association.Release(*session);
    while (Take()) {
    }
  }
  EXPECT_EQ(end_.association.sessions(), 10'002u);
  EXPECT_LE(Growth(), size_t{10'000} * 1000);
  // It may have each stream anew, as often as it likes.
  for (int again = 0; again < 1000; ++again) {
    end_.Get(Make(2, Kind::kInitiate, 0));
    Session* const session = end_.association.TakeNews();
    ASSERT_NE(session, nullptr);
    end_.association.Release(*session);
    while (Take()) {
    }
  }
  EXPECT_LE(Growth(), size_t{10'000} * 1000);
}

TEST_F(HostilePeerTest, ManyReordersThatNeedNoneCostNoTime) {
  // Backwards, the worst order that there is, again and again.
  for (int round = 0; round < 10; ++round) {
    const auto base = static_cast<uint16_t>(1 + round * 3000);
    for (int i = 2999; i >= 0; --i) end_.Get(Segment(kBad, static_cast<uint16_t>(base + i), Bytes(16)));
  }
  bad_delivered_ = 30'000;
  EXPECT_EQ(bad_.state(), SessionState::kAccepted);
  EXPECT_EQ(end_.association.held_bytes(), 0u);
}

TEST_F(HostilePeerTest, NoiseFromASeedEndsNobodyElse) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
      Bytes bytes(random() % 40);
      for (uint8_t& byte : bytes)
        byte = random() % 3 == 0 ? static_cast<uint8_t>(random()) : static_cast<uint8_t>(random() % 8);
      end_.Get({.stream = static_cast<uint16_t>(2 + random() % 40),
                .ppid = static_cast<uint32_t>(14 + random() % 6),
                .bytes = std::move(bytes)});
      if (Session* const session = end_.association.TakeNews()) {
        if (session->state() != SessionState::kRequested || random() % 2 == 0) {
          end_.association.Release(*session);
        } else {
          session->Accept(Bytes(4));
        }
      }
      if (random() % 3 == 0) Take();
      if (random() % 9 == 0) end_.AcknowledgeAll();
    }
    GoodSegment();
    EXPECT_LE(Growth(), size_t{5} << 20);
  }
}

}  // namespace
}  // namespace weft::ddp::sctp
