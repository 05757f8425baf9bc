#include "mpi_hybrid/p2p/testing/transport_suite.h"

#include <sys/uio.h>

#include <algorithm>
#include <random>
#include <utility>

namespace weft::mpi::testing {

void JobTest::ExpectTraffic(int a, int b, size_t length) {
  const std::vector<uint8_t> from_a = Data(length, a), from_b = Data(length, b);
  std::vector<uint8_t> got_a(length), got_b(length);
  Request* requests[] = {at(a).Receive(got_a, b, 9), at(b).Receive(got_b, a, 9), at(a).Send(from_a, b, 9),
                         at(b).Send(from_b, a, 9)};
  for (Request* request : requests) {
    EXPECT_TRUE(PollUntil([&] { return request->complete; })) << "seed " << seed_;
    EXPECT_TRUE(request->error.ok()) << request->error.message();
    request->Release();
  }
  EXPECT_EQ(got_a, from_b);
  EXPECT_EQ(got_b, from_a);
}

namespace {

long CountComplete(const std::vector<Request*>& requests) {
  return std::count_if(requests.begin(), requests.end(), [](const Request* request) { return request->complete; });
}

// As SendAtOnce (message.cc) does: writes an eager message at once, or `soon`, and leaves what did not go out to the engine. Null:
// all of it did.
Request* SendAtOnce(Peer& peer, const std::vector<uint8_t>& data, int to, int tag, bool soon = false) {
  Link& link = peer.engine.LinkTo(to);
  FrameHeader header = {.kind = FrameKind::kEager,
                        .context = peer.comm->send_context,
                        .tag = tag,
                        .source = peer.comm->rank,
                        .length = data.size()};
  link.AddCreditTo(header);
  uint8_t bytes[FrameHeader::kLength];
  header.SerializeTo(bytes);
  Payload payload(data.data(), data.size());
  iovec pieces[2] = {{bytes, sizeof(bytes)}};
  const size_t count = 1 + payload.Peek(std::span(pieces).subspan(1), data.size());
  const size_t total = sizeof(bytes) + data.size();
  const uint32_t flow = Link::FlowOf(*peer.comm, header.context, tag);
  const size_t written = soon ? peer.device.WriteSoon(link, {pieces, count}, total, flow) : peer.device.WriteAtOnce(link, {pieces, count}, total, flow);
  EXPECT_LE(written, sizeof(bytes) + data.size());
  link.TakeCredit(Link::CostOf(data.size()));
  if (written == sizeof(bytes) + data.size()) {
    link.WroteAtOnce(header);
    return nullptr;
  }
  Request* rest = peer.engine.ContinueSend(link, header, payload, written, Byte(), *peer.comm);
  peer.device.Flush();
  return rest;
}

// A wire that leads nowhere and is looked at as often as the others: what happens beside a device that is being
// stopped.
class Beside final : public Transport {
 public:
  explicit Beside(std::function<void()> look) : look_(std::move(look)) {}
  Error Start() override { return {}; }
  bool Reaches(ProcessId) const override { return false; }
  void Connect(Link&) override {}
  bool Flush(Link&) override { return false; }
  size_t WriteAtOnce(Link&, std::span<const iovec>, size_t, uint32_t) override { return 0; }
  bool Poll() override {
    look_();
    return false;
  }
  bool Arm() override { return false; }  // there is always something to look at
  std::optional<EventLoop::Clock::time_point> deadline() const override { return std::nullopt; }
  void OnTime(EventLoop::Clock::time_point) override {}
  void StopConnecting() override {}
  void EndOutput(Link&) override {}
  bool HasConnections() const override { return false; }
  void Close() override {}
  Error Listen() override { return {}; }
  bool IsConnected(const Link&) const override { return false; }
  void Drop(const Link&) override {}

 private:
  const std::function<void()> look_;
};

}  // namespace

std::vector<Request*> TransportSuite::Fill(int to, const std::vector<uint8_t>& filling) {
  still_.insert(to);
  std::vector<Request*> sends;
  for (int i = 0; i < 130; ++i) sends.push_back(at(0).Send(filling, to, 4));
  while (at(0).device.Poll()) {
  }
  EXPECT_LT(CountComplete(sends), 130) << "the wire takes all, and nobody reads";
  return sends;
}

TEST_P(TransportSuite, BothSidesConnectAtOnceAndNothingIsLostOrReordered) {
  for (int first : {0, 1}) {
    Make(2);
    constexpr int kMessages = 50;
    std::vector<std::vector<uint8_t>> sent, got(2 * kMessages, std::vector<uint8_t>(100000));
    std::vector<Request*> requests;
    for (int i = 0; i < kMessages; ++i) sent.emplace_back(i % 7 == 0 ? 100000 : i, static_cast<uint8_t>(i));
    for (int i = 0; i < kMessages; ++i) {
      for (int rank : {first, 1 - first}) requests.push_back(at(rank).Send(sent[static_cast<size_t>(i)], 1 - rank, 3));
    }
    for (int i = 0; i < kMessages; ++i) {
      for (int rank : {0, 1}) requests.push_back(at(rank).Receive(got[static_cast<size_t>(2 * i + rank)], 1 - rank, 3));
    }
    for (Request* request : requests) {
      ASSERT_TRUE(PollUntil([&] { return request->complete; }));
      EXPECT_TRUE(request->error.ok()) << request->error.message();
      request->Release();
    }
    for (int i = 0; i < 2 * kMessages; ++i) {
      const auto& data = sent[static_cast<size_t>(i / 2)];
      ASSERT_TRUE(std::equal(data.begin(), data.end(), got[static_cast<size_t>(i)].begin())) << i;
    }
  }
}

TEST_P(TransportSuite, ADeadPeerIsAnErrorWhereverItIsNeeded) {
  Make(3);
  ExpectTraffic(0, 1);
  std::vector<uint8_t> from_dead(10), from_living(10);
  Request* receive = at(0).Receive(from_dead, 1, 1);
  Request* other = at(0).Receive(from_living, 2, 1);
  peers_[1].reset();
  ASSERT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  EXPECT_FALSE(other->complete);
  const std::vector<uint8_t> data = {1, 2, 3};
  Request* send = at(2).Send(data, 0, 1);
  EXPECT_TRUE(PollUntil([&] { return other->complete && send->complete; }));
  // Rank 2 learns of it by trying to connect.
  Request* late = at(2).Receive(from_dead, 1, 1);
  at(2).device.ConnectToAwaited();
  EXPECT_TRUE(PollUntil([&] { return late->complete; }));
  EXPECT_EQ(late->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  for (Request* request : {receive, other, send, late}) request->Release();
}

TEST_P(TransportSuite, AProbeNoticesTheDeathOfAPeerThatWasNeverTalkedTo) {
  Make(2);
  const AwaitedProbe probe{1, *at(0).comm};
  at(0).engine.StartAwaiting(probe);
  peers_[1].reset();
  at(0).device.ConnectToAwaited();
  EXPECT_TRUE(PollUntil([&] { return at(0).engine.IsDead(1); }));
  at(0).engine.StopAwaiting(probe);
}

// Nothing ends its connections: as where a child of it holds them.
TEST_P(TransportSuite, WhoeverIsToldDeadIsGoneAndWhatItSentCounts) {
  Make(3);
  ExpectTraffic(0, 1);
  const std::vector<uint8_t> data = Data(10, 3);
  std::vector<uint8_t> late(10), never(10);
  Request* sent = at(1).Send(data, 0, 7);
  ASSERT_TRUE(PollUntil([&] { return sent->complete && network_->IsQuiet(); }));
  still_ = {1};
  Request* pending = at(0).Receive(never, 1, 8);
  at(0).device.OnToldDead(1);
  at(2).device.OnToldDead(1);
  EXPECT_TRUE(at(2).engine.IsDead(1)) << "there is no connection that would say so";
  ASSERT_TRUE(PollUntil([&] { return at(0).engine.IsDead(1); }));
  Request* received = at(0).Receive(late, 1, 7);
  EXPECT_TRUE(received->complete && received->error.ok());
  EXPECT_EQ(late, data);
  EXPECT_TRUE(pending->complete);
  EXPECT_EQ(pending->error.mpi_class(), MPIX_ERR_PROC_FAILED);
  at(0).device.OnToldDead(1);
  at(0).device.OnToldDead(0);
  ExpectTraffic(0, 2);
  for (Request* request : {sent, pending, received}) request->Release();
}

TEST_P(TransportSuite, AReceiveFromAnyoneConnectsToFewOfMany) {
  constexpr int kRanks = 40;
  Make(kRanks);
  std::vector<uint8_t> got(10);
  Request* receive = at(30).Receive(got, MPI_ANY_SOURCE, 1);
  at(30).device.ConnectToAwaited();
  const auto connections = [&] {
    int count = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const Link* link = at(30).engine.FindLink(rank);
      count += link != nullptr && link->state() == Link::State::kOpen;
    }
    return count;
  };
  ASSERT_TRUE(PollUntil([&] { return connections() == 16; }));
  // One of those that are watched dies.
  peers_[5].reset();
  EXPECT_TRUE(PollUntil([&] { return receive->IsHindered(); }));
  EXPECT_EQ(receive->Hindrance().mpi_class(), MPIX_ERR_PROC_FAILED_PENDING);
  EXPECT_EQ(connections(), 15);
  // It stays for the others.
  at(30).comm->acknowledged = {5};
  EXPECT_FALSE(receive->IsHindered());
  const std::vector<uint8_t> data = Data(10, 1);
  Request* send = at(31).Send(data, 30, 1);
  EXPECT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_TRUE(receive->error.ok());
  for (Request* request : {receive, send}) request->Release();
}

TEST_P(TransportSuite, PollTellsOfWritesToo) {
  Make(2);
  ExpectTraffic(0, 1);
  // More than the sockets hold, into a rank that does not look; and nothing comes back that would be read.
  const std::vector<uint8_t> sent(60000, 5);
  const std::vector<Request*> sends = Fill(1, sent);
  while (!sends.back()->complete) {
    while (at(1).device.Poll()) {
    }
    const auto before = CountComplete(sends);
    const bool moved = at(0).device.Poll();
    ASSERT_TRUE(moved || CountComplete(sends) == before) << "a send completed, and Poll() says that nothing moved";
  }
  for (Request* send : sends) send->Release();
}

TEST_P(TransportSuite, EachOfManyTalksToEachOther) {
  Make(8);
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < a; ++b) ExpectTraffic(a, b);
  }
}

TEST_P(TransportSuite, WhatWasSentBeforeAnOrderlyEndArrives) {
  Make(2);
  ExpectTraffic(0, 1);
  std::vector<uint8_t> sent(60000, 3), got(60000);
  Request* send = at(0).Send(sent, 1, 1);
  at(0).device.Stop(std::chrono::milliseconds(20));
  Request* receive = at(1).Receive(got, 0, 1);
  EXPECT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_EQ(got, sent);
  at(1).device.Stop(std::chrono::milliseconds(20));
  EXPECT_FALSE(at(1).engine.IsDead(0));
  EXPECT_TRUE(send->complete && send->error.ok());
  send->Release();
  receive->Release();
}

TEST_P(TransportSuite, AFrameThatIsWrittenAtOnceArrivesHoweverMuchOfItTheWireTook) {
  Make(2);
  ExpectTraffic(0, 1);
  std::mt19937 random(seed_);
  constexpr int kMessages = 300;
  std::vector<std::vector<uint8_t>> sent, got;
  std::vector<Request*> receives, rests;
  for (int i = 0; i < kMessages; ++i) {
    sent.push_back(Data(random() % 3 == 0 ? random() % 100000 : random() % 100, i));
    got.emplace_back(sent.back().size());
  }
  for (int i = 0; i < kMessages; ++i) receives.push_back(at(1).Receive(got[static_cast<size_t>(i)], 0, 3));
  for (const std::vector<uint8_t>& data : sent) {
    const Link& link = at(0).engine.LinkTo(1);
    ASSERT_TRUE(PollUntil([&] { return link.is_idle() && link.HasCredit(Link::CostOf(data.size())); }));
    if (Request* rest = SendAtOnce(at(0), data, 1, 3)) rests.push_back(rest);
  }
  for (const auto* requests : {&receives, &rests}) {
    for (Request* request : *requests) {
      ASSERT_TRUE(PollUntil([&] { return request->complete; })) << "seed " << seed_;
      request->Release();
    }
  }
  EXPECT_EQ(got, sent);
}

bool TransportSuite::TookAll(Request* rest) {
  if (rest == nullptr) return true;
  const std::set<int> still = std::exchange(still_, {});
  EXPECT_TRUE(PollUntil([&] { return rest->complete; }));
  rest->Release();
  still_ = still;
  return false;
}

// The promise is a millisecond; on a machine that others use it is kept now and then.
TEST_P(TransportSuite, AFrameThatOthersAreToFollowArrivesThoughItsSenderDoesNothing) {
  Make(2);
  ExpectTraffic(0, 1);
  still_ = {0};
  constexpr int kRounds = 200;
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<uint8_t> got(500);
    Request* receive = at(1).Receive(got, 0, 3);
    const auto begun = std::chrono::steady_clock::now();
    const bool took_all = TookAll(SendAtOnce(at(0), Data(500, round), 1, 3, /*soon=*/true));
    // Without the naps that PollUntil may take where nothing moves.
    while (!receive->complete && std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(5)) at(1).device.Poll();
    ASSERT_TRUE(PollUntil([&] { return receive->complete; })) << "seed " << seed_;
    if (took_all) fastest = std::min(fastest, std::chrono::steady_clock::now() - begun);
    EXPECT_EQ(got, Data(500, round));
    receive->Release();
    at(0).device.Poll();  // for credit
  }
  EXPECT_LT(fastest, std::chrono::milliseconds(1));
}

TEST_P(TransportSuite, AFrameThatOthersAreToFollowLeavesInFrontOfTheNextAndAtPoll) {
  Make(2);
  ExpectTraffic(0, 1);
  still_ = {0};
  for (const bool polls : {false, true}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<uint8_t> got[2] = {std::vector<uint8_t>(500), std::vector<uint8_t>(500)};
      Request* receives[] = {at(1).Receive(got[0], 0, 3), at(1).Receive(got[1], 0, 3)};
      for (const int message : {0, 1}) (void)TookAll(SendAtOnce(at(0), Data(500, round + message), 1, 3, /*soon=*/polls || message == 0));
      if (polls) at(0).device.Poll();
      ASSERT_TRUE(PollUntil([&] { return receives[0]->complete && receives[1]->complete; })) << "seed " << seed_;
      EXPECT_EQ(got[0], Data(500, round));
      EXPECT_EQ(got[1], Data(500, round + 1));
      for (Request* receive : receives) receive->Release();
      at(0).device.Poll();
    }
  }
}

TEST_P(TransportSuite, FramesThatOthersFollowAndThoseThatGoAtOnceKeepTheirOrder) {
  Make(2);
  ExpectTraffic(0, 1);
  std::mt19937 random(seed_);
  constexpr int kMessages = 600;
  std::vector<std::vector<uint8_t>> sent, got;
  std::vector<Request*> requests;
  for (int i = 0; i < kMessages; ++i) {
    sent.push_back(Data(random() % 4 == 0 ? random() % 20000 : random() % 1000, i));
    got.emplace_back(sent.back().size());
  }
  for (int i = 0; i < kMessages; ++i) requests.push_back(at(1).Receive(got[static_cast<size_t>(i)], 0, 3));
  for (const std::vector<uint8_t>& data : sent) {
    const Link& link = at(0).engine.LinkTo(1);
    if (random() % 8 == 0) at(0).device.Poll();
    if (random() % 8 == 0) at(1).device.Poll();
    if (random() % 16 == 0 || !link.is_idle() || !link.HasCredit(Link::CostOf(data.size()))) {
      requests.push_back(at(0).Send(data, 1, 3));
      if (random() % 2 == 0) {
        ASSERT_TRUE(PollUntil([&] { return link.is_idle() && link.HasCredit(Link::CostOf(20000)); }));
      }
    } else if (Request* rest = SendAtOnce(at(0), data, 1, 3, /*soon=*/random() % 4 != 0)) {
      requests.push_back(rest);
    }
  }
  for (Request* request : requests) {
    ASSERT_TRUE(PollUntil([&] { return request->complete; })) << "seed " << seed_;
    request->Release();
  }
  EXPECT_EQ(got, sent);
}

TEST_P(TransportSuite, AFrameThatOthersAreToFollowArrivesBeforeAnOrderlyEnd) {
  Make(2);
  ExpectTraffic(0, 1);
  std::vector<uint8_t> got(500);
  Request* rest = SendAtOnce(at(0), Data(500, 1), 1, 3, /*soon=*/true);
  at(0).device.Stop(std::chrono::milliseconds(20));
  Request* receive = at(1).Receive(got, 0, 3);
  EXPECT_TRUE(PollUntil([&] { return receive->complete; }));
  EXPECT_TRUE(receive->error.ok());
  EXPECT_EQ(got, Data(500, 1));
  receive->Release();
  if (rest != nullptr) rest->Release();
  at(1).device.Stop(std::chrono::milliseconds(20));
}

TEST_P(TransportSuite, ASleepEndsWhenSomethingComes) {
  Make(2);
  ExpectTraffic(0, 1);
  for (int round = 0; round < 20; ++round) {
    const std::vector<uint8_t> sent = Data(2000, round);
    std::vector<uint8_t> got(2000);
    Request* receive = at(0).Receive(got, 1, 9);
    Request* send = at(1).Send(sent, 0, 9);
    while (!send->complete) at(1).device.Poll();
    // Each for longer than a test may take: one that sleeps through what comes does not end.
    while (!receive->complete) at(0).device.Sleep(600'000);
    EXPECT_EQ(got, sent);
    send->Release();
    receive->Release();
  }
}

TEST_P(TransportSuite, APeerThatReadsNothingKeepsNoOtherWaiting) {
  for (const int size : {3, 8}) {  // a few are polled directly, many by the loop
    SCOPED_TRACE(std::to_string(size) + " ranks");
    Make(size);
    for (int rank = 1; rank < size; ++rank) ExpectTraffic(0, rank);
    const std::vector<uint8_t> filling = Data(60000, 1);
    const std::vector<Request*> sends = Fill(1, filling);
    for (int round = 0; round < 3; ++round) {
      for (int rank = 2; rank < size; ++rank) {
        ExpectTraffic(0, rank, 100);
        ExpectTraffic(0, rank, 1'000'000);
      }
      // What is behind the full wire keeps no sleep from sleeping either, nor from waking.
      const std::vector<uint8_t> data = Data(10, round);
      std::vector<uint8_t> got(10);
      Request* receive = at(0).Receive(got, 2, 5);
      Request* send = at(2).Send(data, 0, 5);
      while (!send->complete) at(2).device.Poll();
      while (!receive->complete) at(0).device.Sleep(600'000);
      EXPECT_EQ(got, data);
      receive->Release();
      send->Release();
    }
    EXPECT_LT(CountComplete(sends), static_cast<long>(sends.size())) << "the wire was not full all the time";
    still_.clear();
    std::vector<uint8_t> got(filling.size());
    for (Request* send : sends) {
      Request* receive = at(1).Receive(got, 0, 4);
      EXPECT_TRUE(PollUntil([&] { return receive->complete && send->complete; }));
      EXPECT_EQ(got, filling);
      receive->Release();
      send->Release();
    }
  }
}

// In MPI_Finalize the others wait for the goodbye.
TEST_P(TransportSuite, AGoodbyeWaitsForNobodyButItsOwnPeer) {
  constexpr auto kPatience = std::chrono::seconds(8);
  constexpr int kRanks = 7;
  // While rank 0 stops the others but rank 1 are polled, which begins to read when they all have been told.
  std::function<void()> look = [] {};
  Make(kRanks);
  at(0).device.Add(std::make_unique<Beside>([&] { look(); }));
  for (int rank = 1; rank < kRanks; ++rank) ExpectTraffic(0, rank);
  const std::vector<uint8_t> filling = Data(60000, 1);
  const std::vector<Request*> sends = Fill(1, filling);

  const auto start = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::duration> told;
  still_.insert(0);
  look = [&] {
    PollOnce();
    int left = 0;
    for (int rank = 2; rank < kRanks; ++rank) left += at(rank).engine.LinkTo(0).state() == Link::State::kLeft;
    if (left < kRanks - 2 || told) return;
    told = std::chrono::steady_clock::now() - start;
    still_.erase(1);
  };
  at(0).device.Stop(kPatience);
  look = [] {};
  ASSERT_TRUE(told.has_value()) << "some were never told";
  EXPECT_LT(*told, kPatience / 2) << "they were told when the patience with rank 1 was over";
  EXPECT_EQ(CountComplete(sends), static_cast<long>(sends.size()));
  for (Request* send : sends) {
    EXPECT_TRUE(send->error.ok()) << send->error.message();
    send->Release();
  }
  // Rank 1 has all of it, and the goodbye behind it.
  std::vector<uint8_t> got(filling.size());
  for (size_t i = 0; i < sends.size(); ++i) {
    Request* receive = at(1).Receive(got, 0, 4);
    EXPECT_TRUE(PollUntil([&] { return receive->complete; }));
    EXPECT_EQ(got, filling);
    receive->Release();
  }
  EXPECT_TRUE(PollUntil([&] { return at(1).engine.LinkTo(0).state() == Link::State::kLeft; }));
  for (int rank = 1; rank < kRanks; ++rank) EXPECT_FALSE(at(rank).engine.IsDead(0));
}

}  // namespace weft::mpi::testing
