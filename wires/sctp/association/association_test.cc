// Sessions over real SCTP, in virtual time.
#include "wires/sctp/association/association.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wires/sctp/testing/two_ends.h"

namespace weft::sctp {
namespace {

using ddp::sctp::SessionState;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::TwoEnds;
using Bytes = std::vector<uint8_t>;
using State = Association::State;

// Keeps each ULPDU, all of it as payload.
class Sink final : public llp::UlpduSink {
 public:
  bool Begin(size_t length, ByteSpan, llp::UlpduPlan* plan) override {
    ulpdus.emplace_back(length);
    piece_ = {ulpdus.back().data(), length};
    *plan = {.header_length = 0, .payload = {&piece_, 1}};
    return true;
  }
  bool End() override { return true; }
  std::vector<Bytes> ulpdus;

 private:
  iovec piece_{};
};

void AppendLocked(Seat& seat, const Bytes& ulpdu) {
  ASSERT_TRUE(seat.session().HasRoom(ulpdu.size(), 1));
  const iovec payload{const_cast<uint8_t*>(ulpdu.data()) + 1, ulpdu.size() - 1};
  seat.session().Append(ByteSpan(ulpdu).first(1), {&payload, 1}, /*volatile_payload=*/true);
}

void Append(Seat& seat, const Bytes& ulpdu) {
  const Association::Lock lock(seat.association());
  AppendLocked(seat, ulpdu);
}

void ReadInto(Seat& seat) {
  const Association::Lock lock(seat.association(), &seat);
  seat.session().SetOpen(true);
  seat.session().Deliver(SIZE_MAX);
  seat.association().Read(64);
  seat.session().SetOpen(false);
}

class AssociationTest : public ::testing::Test {
 protected:
  void SetUp() override { RecordProperty("seed", std::to_string(seed_)); }

  std::unique_ptr<Seat> Open(Association& association, const Bytes& private_data = {}) {
    const Association::Lock lock(association);
    return association.Open(private_data, /*enhanced=*/false);
  }
  // Of the server: keeps what its peers ask for.
  void TakeRequests(const std::shared_ptr<Association>& association) {
    const Association::Lock lock(*association);
    association->SetOnRequest([this, weak = std::weak_ptr(association)] {
      const auto alive = weak.lock();
      if (alive == nullptr) return;
      const Association::Lock inner(*alive);
      while (auto seat = alive->TakeRequest()) requests_.push_back(std::move(seat));
    });
  }
  std::pair<std::unique_ptr<Seat>, std::unique_ptr<Seat>> OpenBoth(Association& client) {
    auto ours = Open(client);
    EXPECT_NE(ours, nullptr);
    EXPECT_TRUE(ends_.Until([&] { return !requests_.empty(); }));
    auto theirs = std::move(requests_.back());
    requests_.pop_back();
    {
      const Association::Lock lock(theirs->association());
      EXPECT_TRUE(theirs->session().Accept({}));
    }
    EXPECT_TRUE(ends_.Until([&] { return TwoEnds::StateOf(*ours) == SessionState::kAccepted; }));
    return {std::move(ours), std::move(theirs)};
  }

  const uint64_t seed_ = static_cast<uint64_t>(::testing::UnitTest::GetInstance()->random_seed()) + 1;
  TwoEnds ends_{seed_};
  std::vector<std::unique_ptr<Seat>> requests_;
};

TEST_F(AssociationTest, ASessionIsAskedForAcceptedAndCarriesSegments) {
  auto [client, server] = ends_.ConnectBoth();
  TakeRequests(server);
  int wakes = 0;
  auto ours = Open(*client, {1, 2, 3});
  ASSERT_NE(ours, nullptr);
  ASSERT_TRUE(ends_.Until([&] { return !requests_.empty(); }));
  Seat& theirs = *requests_[0];
  {
    const Association::Lock lock(*server);
    EXPECT_EQ(theirs.session().private_data(), (Bytes{1, 2, 3}));
    theirs.SetWake([&] { ++wakes; });
    EXPECT_TRUE(theirs.session().Accept(Bytes{4}));
  }
  ASSERT_TRUE(ends_.Until([&] { return TwoEnds::StateOf(*ours) == SessionState::kAccepted; }));
  EXPECT_EQ(ours->session().private_data(), Bytes{4});
  EXPECT_EQ(wakes, 0);
  Sink sink;
  theirs.session().Attach(sink);
  Append(*ours, Bytes(1000, 7));
  ASSERT_TRUE(ends_.Until([&] { return wakes != 0; })) << "the network's thread holds it, and says so";
  EXPECT_TRUE(sink.ulpdus.empty()) << "a sink is called by who has its engine's lock";
  ReadInto(theirs);
  EXPECT_EQ(sink.ulpdus, std::vector<Bytes>{Bytes(1000, 7)});
}

TEST_F(AssociationTest, WhoReadsForHimselfLeavesTheOthersTheirs) {
  ends_.network().SetDefaultLink({.jitter = 2ms, .lose_datagram = 0.02, .repeat_datagram = 0.02});
  auto [client, server] = ends_.ConnectBoth();
  TakeRequests(server);
  constexpr size_t kSessions = 6, kCount = 200;
  std::vector<std::pair<std::unique_ptr<Seat>, std::unique_ptr<Seat>>> pairs;
  Sink sinks[kSessions];
  int told[kSessions] = {};
  for (size_t i = 0; i < kSessions; ++i) {
    pairs.push_back(OpenBoth(*client));
    const Association::Lock lock(*server);
    pairs[i].second->session().Attach(sinks[i]);
    pairs[i].second->SetWake([&told, i] { ++told[i]; });
  }
  for (size_t n = 0; n < kCount; ++n) {
    for (size_t i = 0; i < kSessions; ++i) {
      ASSERT_TRUE(ends_.Until([&] {
        const Association::Lock lock(*client);
        return pairs[i].first->session().HasRoom(500, 1);
      }));
      Append(*pairs[i].first, Bytes(500, static_cast<uint8_t>(n + i)));
    }
  }
  // The first polls; the others look when they are told.
  ASSERT_TRUE(ends_.Until([&] {
    ReadInto(*pairs[0].second);
    for (size_t i = 1; i < kSessions; ++i) {
      if (std::exchange(told[i], 0) != 0) ReadInto(*pairs[i].second);
    }
    return std::all_of(std::begin(sinks), std::end(sinks),
                       [](const Sink& sink) { return sink.ulpdus.size() == kCount; });
  }));
  for (size_t i = 0; i < kSessions; ++i) {
    for (size_t n = 0; n < kCount; ++n)
      ASSERT_EQ(sinks[i].ulpdus[n], Bytes(500, static_cast<uint8_t>(n + i))) << i << " " << n;
  }
}

TEST_F(AssociationTest, ARequestThatNobodyTakesIsRefused) {
  auto [client, server] = ends_.ConnectBoth();
  auto ours = Open(*client);
  ASSERT_TRUE(ends_.Until([&] { return TwoEnds::StateOf(*ours) == SessionState::kRefused; }, 5s));
  EXPECT_EQ(server->sessions(), 0u);
}

TEST_F(AssociationTest, WhatWasSaidLastStillGoesOut) {
  auto [client, server] = ends_.ConnectBoth();
  TakeRequests(server);
  auto [ours, theirs] = OpenBoth(*client);
  Sink sink;
  theirs->session().Attach(sink);
  {
    const Association::Lock lock(*client);
    AppendLocked(*ours, Bytes(900, 1));
    ours->session().End();
    client->Linger(std::move(ours));
  }
  client.reset();
  ASSERT_TRUE(ends_.Until([&] {
    ReadInto(*theirs);
    return TwoEnds::StateOf(*theirs) == SessionState::kEnded;
  }));
  EXPECT_EQ(sink.ulpdus.size(), 1u);
  ASSERT_TRUE(ends_.Until([&] { return TwoEnds::StateOf(*server) == State::kOver; }, 5s))
      << "nobody holds the client's end";
}

TEST_F(AssociationTest, SilenceOfThePeerIsTheLossOfEachSession) {
  auto [client, server] = ends_.ConnectBoth();
  TakeRequests(server);
  auto [one, its] = OpenBoth(*client);
  auto [two, other] = OpenBoth(*client);
  int told = 0;
  for (Seat* const seat : {one.get(), two.get()}) {
    const Association::Lock lock(*client);
    seat->SetWake([&] { ++told; });
  }
  ends_.network().SetDefaultLink({.lose_datagram = 1});
  ASSERT_TRUE(ends_.Until([&] { return told == 2; }));
  EXPECT_EQ(TwoEnds::StateOf(*one), SessionState::kLost);
  EXPECT_EQ(TwoEnds::StateOf(*two), SessionState::kLost);
  EXPECT_EQ(client->error(), ETIMEDOUT);
  EXPECT_EQ(Open(*client), nullptr);
}

TEST(AssociationOfAnotherKind, IsLeft) {
  for (const std::optional<uint32_t> says : {std::optional<uint32_t>(), std::optional<uint32_t>(2)}) {
    TwoEnds ends(1, says);
    auto client = ends.Connect();
    ASSERT_TRUE(ends.Until([&] { return TwoEnds::StateOf(*client) == State::kOver; }));
    EXPECT_EQ(client->error(), EPROTO) << client->why();
  }
}

}  // namespace
}  // namespace weft::sctp
