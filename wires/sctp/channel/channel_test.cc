// Channels over sessions of real SCTP, in virtual time.
#include "wires/sctp/channel/channel.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/processors.h"
#include "wires/sctp/testing/two_ends.h"

namespace weft::sctp {
namespace {

using ddp::sctp::SessionState;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::TwoEnds;
using Bytes = std::vector<uint8_t>;

// The owner of a channel: sends what it is given as there is room, keeps what comes, steps when it is called.
class Owner final : public llp::ChannelUser, public llp::UlpduSink, public std::enable_shared_from_this<Owner> {
 public:
  void Start(std::unique_ptr<Seat> seat) {
    seat_ = seat.get();
    channel = std::make_unique<Channel>(std::move(seat), *transport::SocketAddress::Parse("10.9.9.9", 1), Channel::Owner());
    channel->Start(*this, weak_from_this());
  }
  void OnWake() override {
    if (!busy) Step();
  }
  void Step() {
    if (channel == nullptr || over()) return;
    received = channel->Receive(4);
    bytes_in += received.bytes;
    Send();
  }
  void Send() {
    for (bool more = true; more;) {
      llp::UlpduWriter& writer = channel->writer();
      while (!to_send.empty() && writer.HasRoom(to_send.front().size() - 1, 1)) {
        kept.push_back(std::move(to_send.front()));
        to_send.pop_front();
        const iovec payload{kept.back().data() + 1, kept.back().size() - 1};
        writer.Append(ByteSpan(kept.back()).first(1), {&payload, 1}, /*volatile_payload=*/false);
      }
      flushed = channel->Flush();
      bytes_out += flushed.bytes;
      more = flushed.kind == llp::Flushed::Kind::kAll && !to_send.empty();
    }
  }
  const Seat& Seated() const { return *seat_; }
  bool over() const {
    return received.kind != llp::Received::Kind::kNothing && received.kind != llp::Received::Kind::kSome;
  }

  bool Begin(size_t length, ByteSpan, llp::UlpduPlan* plan) override {
    if (ulpdus.size() == refuse_at) return false;
    if (answers) channel->writer().Append(Bytes{9}, {}, false);
    ulpdus.emplace_back(length);
    piece_ = {ulpdus.back().data(), length};
    *plan = {.header_length = 0, .payload = {&piece_, 1}};
    return true;
  }
  bool End() override { return true; }

  std::unique_ptr<llp::Channel> channel;
  std::deque<Bytes> to_send;
  std::deque<Bytes> kept;
  std::vector<Bytes> ulpdus;
  llp::Received received;
  llp::Flushed flushed;
  uint64_t bytes_in = 0, bytes_out = 0;
  size_t refuse_at = SIZE_MAX;
  bool answers = false;  // from within Begin()
  bool busy = false;     // elsewhere: does not step when it is called

 private:
  iovec piece_{};
  const Seat* seat_ = nullptr;  // the channel's
};

class SctpChannel : public ::testing::Test {
 protected:
  void SetUp() override {
    RecordProperty("seed", std::to_string(seed_));
    std::tie(client_, server_) = ends_.ConnectBoth();
    const Association::Lock lock(*server_);
    server_->SetOnRequest([this] {
      const Association::Lock inner(*server_);
      while (auto seat = server_->TakeRequest()) requests_.push_back(std::move(seat));
    });
  }
  // Two channels of one session.
  std::pair<std::shared_ptr<Owner>, std::shared_ptr<Owner>> Pair() {
    std::unique_ptr<Seat> ours;
    {
      const Association::Lock lock(*client_);
      ours = client_->Open({}, /*enhanced=*/false);
    }
    EXPECT_TRUE(ends_.Until([&] { return !requests_.empty(); }));
    auto theirs = std::move(requests_.back());
    requests_.pop_back();
    {
      const Association::Lock lock(*server_);
      EXPECT_TRUE(theirs->session().Accept({}));
    }
    EXPECT_TRUE(ends_.Until([&] { return TwoEnds::StateOf(*ours) == SessionState::kAccepted; }));
    std::pair owners{std::make_shared<Owner>(), std::make_shared<Owner>()};
    owners.first->Start(std::move(ours));
    owners.second->Start(std::move(theirs));
    return owners;
  }
  static Bytes Pattern(size_t length, size_t n) { return Bytes(length, static_cast<uint8_t>(n)); }

  const uint64_t seed_ = static_cast<uint64_t>(::testing::UnitTest::GetInstance()->random_seed()) + 1;
  TwoEnds ends_{seed_};
  std::shared_ptr<Association> client_, server_;
  std::vector<std::unique_ptr<Seat>> requests_;
};

TEST_F(SctpChannel, MegabytesGoBothWaysOnSeveralSessionsOverARoughLinkAndNobodyHasToPoll) {
  ends_.network().SetDefaultLink({.jitter = 1ms, .lose_datagram = 0.01, .repeat_datagram = 0.01});
  constexpr size_t kSessions = 4, kCount = 1500;  // more than the buffers of SCTP take
  std::vector<std::shared_ptr<Owner>> owners;
  for (size_t i = 0; i < kSessions; ++i) {
    auto [one, other] = Pair();
    owners.insert(owners.end(), {one, other});
  }
  bool blocked = false;
  for (const auto& owner : owners) {
    for (size_t n = 0; n < kCount; ++n) owner->to_send.push_back(Pattern(1200, n));
    owner->Send();
    blocked |= owner->flushed.kind == llp::Flushed::Kind::kBlocked;
  }
  EXPECT_TRUE(blocked);
  const auto all_there = [&] {
    for (const auto& owner : owners) {
      if (owner->ulpdus.size() != kCount || !owner->channel->empty()) return false;
    }
    return true;
  };
  ASSERT_TRUE(ends_.Until(all_there, 600s));
  for (const auto& owner : owners) {
    for (size_t n = 0; n < kCount; ++n) ASSERT_EQ(owner->ulpdus[n], Pattern(1200, n)) << n;
    owner->Send();
    EXPECT_EQ(owner->bytes_out, owner->channel->consumed()) << "each byte was reported by a Flush";
    EXPECT_EQ(owner->bytes_in, kCount * 1200);
    EXPECT_TRUE(owner->channel->quiet());
  }
}

TEST_F(SctpChannel, ASinkMayAnswerFromWithin) {
  auto [one, other] = Pair();
  other->answers = true;
  one->to_send = {Pattern(100, 1), Pattern(100, 2)};
  one->Send();
  ASSERT_TRUE(ends_.Until([&] { return one->ulpdus.size() == 2; }, 5s));
  EXPECT_EQ(one->ulpdus[0], Bytes{9});
}

TEST_F(SctpChannel, ATryDoesNotWaitForAThreadThatIsAtTheAssociation) {
  auto [one, other] = Pair();
  other->busy = true;
  one->to_send = {Pattern(100, 1)};
  one->Send();
  ASSERT_TRUE(ends_.Until([&] {
    const Association::Lock lock(*server_);
    return other->Seated().session().deliverable();
  }, 5s));
  std::latch has_it(1), may_go(1);
  std::thread holder([&] {
    const auto held = server_->Hold();
    has_it.count_down();
    may_go.wait();
  });
  has_it.wait();
  // A try that waited would not come back.
  const llp::Received turned_away = other->channel->TryReceive(4);
  EXPECT_TRUE(other->channel->Lend()) << "the thread that has the lock may wait for this processor";
  may_go.count_down();
  holder.join();
  EXPECT_EQ(turned_away.kind, llp::Received::Kind::kNothing);
  EXPECT_TRUE(other->ulpdus.empty());
  const llp::Received received = other->channel->TryReceive(4);
  EXPECT_EQ(received.kind, llp::Received::Kind::kSome);
  EXPECT_EQ(other->ulpdus.size(), 1u);
  EXPECT_EQ(other->channel->Lend(), OnlyOneProcessor());
}

TEST_F(SctpChannel, ASinkThatRefusesStopsItsOwnSessionOnly) {
  auto [one, other] = Pair();
  auto [two, another] = Pair();
  other->refuse_at = 1;
  for (const auto& owner : {one, two}) {
    for (size_t n = 0; n < 3; ++n) owner->to_send.push_back(Pattern(100, n));
    owner->Send();
  }
  ASSERT_TRUE(ends_.Until([&] { return other->over() && another->ulpdus.size() == 3; }, 5s));
  EXPECT_EQ(other->received.kind, llp::Received::Kind::kStopped);
  EXPECT_EQ(other->received.broken, llp::Error::kNone);
  EXPECT_EQ(other->ulpdus.size(), 1u);
  EXPECT_FALSE(another->over());
}

TEST_F(SctpChannel, AnOrderlyEndComesAfterAllThatWasAppendedAndTheLastWords) {
  auto [one, other] = Pair();
  for (size_t n = 0; n < 4000; ++n) one->to_send.push_back(Pattern(1300, n));  // more than the send buffer holds
  one->Send();
  ASSERT_EQ(one->flushed.kind, llp::Flushed::Kind::kBlocked);
  const size_t appended = one->kept.size();
  one->channel->Close([](llp::UlpduWriter& writer) { writer.Append(Bytes{1, 2}, {}, false); });
  one->channel.reset();
  for (Bytes& bytes : one->kept) std::fill(bytes.begin(), bytes.end(), 0xee);  // the program's again
  ASSERT_TRUE(ends_.Until([&] { return other->over(); }));
  EXPECT_EQ(other->received.kind, llp::Received::Kind::kEnded);
  ASSERT_EQ(other->ulpdus.size(), appended + 1);
  for (size_t n = 0; n < appended; ++n) ASSERT_EQ(other->ulpdus[n], Pattern(1300, n)) << n;
  EXPECT_EQ(other->ulpdus.back(), (Bytes{1, 2}));
}

TEST_F(SctpChannel, EndedOutputLeavesTheOtherDirection) {
  auto [one, other] = Pair();
  one->channel->EndOutput();
  ASSERT_TRUE(ends_.Until([&] { return other->over(); }, 5s));
  EXPECT_EQ(other->received.kind, llp::Received::Kind::kEnded);
  other->to_send = {Pattern(50, 5)};
  other->Send();
  ASSERT_TRUE(ends_.Until([&] { return one->ulpdus.size() == 1; }, 5s));
}

TEST_F(SctpChannel, AnOrderlyEndIsOneForWhoeverLooksWhenTheAssociationIsGoneToo) {
  auto [one, other] = Pair();
  other->busy = true;
  one->channel->Close([](llp::UlpduWriter&) {});
  one.reset();
  client_.reset();
  ASSERT_TRUE(ends_.Until([&] { return TwoEnds::StateOf(*server_) == Association::State::kOver; }, 5s));
  while (!other->over()) other->Step();
  EXPECT_EQ(other->received.kind, llp::Received::Kind::kEnded);
  EXPECT_TRUE(other->channel->failed());
}

TEST_F(SctpChannel, AnAbortedSessionIsOneStreamForTheNext) {
  for (int round = 0; round < 200; ++round) {  // more than there are streams
    auto [one, other] = Pair();
    one->channel->Abort();
    one->channel.reset();
    ASSERT_TRUE(ends_.Until([&] { return other->over(); }, 5s)) << round;
    other->channel->Close([](llp::UlpduWriter&) {});
    other->channel.reset();
    ends_.network().RunFor(100ms);
  }
  EXPECT_LE(client_->sessions(), 1u);
  EXPECT_LE(server_->sessions(), 1u);
}

TEST_F(SctpChannel, ThePeersSilenceFailsEachChannel) {
  auto [one, other] = Pair();
  auto [two, another] = Pair();
  ends_.network().SetDefaultLink({.lose_datagram = 1});
  one->to_send = {Pattern(50, 5)};
  one->Send();
  ASSERT_TRUE(ends_.Until([&, one = one, two = two] { return one->over() && two->over(); }));
  for (const auto& owner : {one, two}) {
    EXPECT_EQ(owner->received.kind, llp::Received::Kind::kFailed);
    EXPECT_EQ(owner->received.error, ETIMEDOUT);
    EXPECT_TRUE(owner->channel->failed());
  }
}

}  // namespace
}  // namespace weft::sctp
