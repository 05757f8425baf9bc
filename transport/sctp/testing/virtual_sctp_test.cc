#include "transport/sctp/testing/virtual_sctp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>

#include "base/crc32c.h"
#include "transport/sctp/testing/recorder.h"

namespace weft::transport::sctp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint16_t kPort = 5043, kUdpPort = 9899;

std::vector<uint8_t> Pattern(size_t length, uint8_t first) {
  std::vector<uint8_t> bytes(length);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

class VirtualSctpTest : public testing::Test {
 protected:
  explicit VirtualSctpTest(uint64_t seed = 0)
      : seed_(static_cast<uint64_t>(std::max(testing::UnitTest::GetInstance()->random_seed(), 1)) + seed) {}
  void SetUp() override {
    RecordProperty("seed", std::to_string(seed_));
    client_ = &world_.AddHost({"10.1.0.1", "10.2.0.1", "fd01::1"});
    server_ = &world_.AddHost({"10.1.0.2", "10.2.0.2", "fd01::2"});
  }

  void Listen(Settings settings = {}, const std::string& at = "10.1.0.2", int backlog = 16) {
    auto listener = server_->Listen(*SocketAddress::Parse(at, kPort), backlog, settings);
    ASSERT_TRUE(listener.ok()) << strerror(listener.error());
    acceptor_ = Acceptor::Of(std::move(*listener));
  }
  std::shared_ptr<Recorder> Connect(Settings settings = {}, const std::vector<std::string>& to = {"10.1.0.2"}) {
    Peer peer{.udp_port = kUdpPort};
    for (const auto& address : to) peer.addresses.push_back(*SocketAddress::Parse(address, kPort));
    auto association = client_->Connect(peer, 0, settings);
    EXPECT_TRUE(association.ok()) << strerror(association.error());
    return association.ok() ? Recorder::Of(std::move(*association)) : nullptr;
  }
  bool Until(const std::function<bool()>& done, Duration most = seconds(60)) {
    return world_.network().RunUntil(done, most);
  }
  Recorder& peer() { return *acceptor_->accepted.at(0); }

  // Both ends, up.
  std::shared_ptr<Recorder> Pair(Settings settings = {}) {
    Listen(settings);
    auto client = Connect(settings);
    EXPECT_TRUE(Until([&] { return client->up && !acceptor_->accepted.empty() && peer().up; }));
    return client;
  }

  const uint64_t seed_;
  VirtualSctp world_{seed_};
  Sctp* client_ = nullptr;
  Sctp* server_ = nullptr;
  std::shared_ptr<Acceptor> acceptor_;
};

TEST_F(VirtualSctpTest, AnAssociationComesUpWithWhatBothEndsSaid) {
  Listen({.streams_out = 10, .streams_in = 7, .adaptation = 0x22});
  auto client = Connect({.streams_out = 9, .streams_in = 20, .adaptation = 0x11});
  ASSERT_TRUE(Until([&] { return client->up && !acceptor_->accepted.empty() && peer().up; }));
  EXPECT_EQ(client->up->streams_out, 7);
  EXPECT_EQ(client->up->streams_in, 10);
  EXPECT_EQ(client->up->adaptation, 0x22u);
  EXPECT_EQ(peer().up->streams_out, 10);
  EXPECT_EQ(peer().up->streams_in, 7);
  EXPECT_EQ(peer().up->adaptation, 0x11u);
  EXPECT_EQ(peer().association->PeerUdpPort(), kUdpPort);
}

TEST_F(VirtualSctpTest, APeerWithoutAnAdaptationIndicationShowsNone) {
  Listen();
  auto client = Connect({.adaptation = 0x11});
  ASSERT_TRUE(Until([&] { return client->up.has_value(); }));
  EXPECT_EQ(client->up->adaptation, std::nullopt);
}

TEST_F(VirtualSctpTest, MessagesKeepTheirBoundsStreamAndIdentifier) {
  auto client = Pair();
  client->Queue(0, 0, {1});
  client->Queue(3, 16, Pattern(100, 1));
  client->Queue(3, 17, Pattern(100'000, 2));
  client->Queue(5, 0xffffffff, Pattern(1400, 3), /*unordered=*/true);
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 4; }));
  std::vector<Recorder::Message> got = peer().messages;
  std::stable_sort(got.begin(), got.end(), [](const auto& a, const auto& b) { return a.info.ppid < b.info.ppid; });
  EXPECT_EQ(got[0].bytes, std::vector<uint8_t>{1});
  EXPECT_EQ(got[1].bytes, Pattern(100, 1));
  EXPECT_EQ(got[1].info.stream, 3);
  EXPECT_EQ(got[1].info.ssn, 0);
  EXPECT_EQ(got[2].bytes, Pattern(100'000, 2));
  EXPECT_EQ(got[2].info.ssn, 1);
  EXPECT_EQ(got[2].info.ppid, 17u);
  EXPECT_EQ(got[3].bytes, Pattern(1400, 3));
  EXPECT_TRUE(got[3].info.unordered);
  EXPECT_FALSE(got[2].info.unordered);
}

TEST_F(VirtualSctpTest, AMessageMayBeOfManyPieces) {
  auto client = Pair();
  const std::vector<uint8_t> bytes = Pattern(10 * kMostPieces, 3);
  std::vector<iovec> pieces(kMostPieces + 1);
  for (size_t i = 0; i < kMostPieces; ++i) pieces[i] = {.iov_base = const_cast<uint8_t*>(&bytes[10 * i]), .iov_len = 10};
  EXPECT_EQ(client->association->Send({.pieces = pieces}).error, EINVAL) << "one more than there may be";
  pieces.pop_back();
  EXPECT_EQ(client->association->Send({.pieces = pieces}).bytes, bytes.size());
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 1; }));
  EXPECT_EQ(peer().messages[0].bytes, bytes);
}

TEST_F(VirtualSctpTest, MessagesThatOthersFollowShareAPacket) {
  auto client = Pair();
  world_.network().RunFor(seconds(1));
  const auto sent = [&] { return client->association->Paths().at(0).packets_out; };
  const auto send = [&](int count, bool last_has_more) {
    for (int i = 1; i <= count; ++i) {
      std::vector<uint8_t> bytes = Pattern(20, static_cast<uint8_t>(i));
      const iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
      ASSERT_EQ(client->association->Send({.more = i < count || last_has_more, .pieces = {&piece, 1}}).kind, IoResult::Kind::kDone);
    }
  };
  uint64_t before = sent();
  send(16, /*last_has_more=*/false);
  EXPECT_EQ(sent(), before + 1);

  // While the first are on their way: as nothing in flight would let it.
  before = sent();
  send(16, /*last_has_more=*/true);
  EXPECT_EQ(sent(), before);
  client->association->Flush();
  EXPECT_EQ(sent(), before + 1) << "and no HEARTBEAT";
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 32; }));
  EXPECT_EQ(peer().messages[31].bytes, Pattern(20, 16));
  ASSERT_TRUE(Until([&] { return !client->association->HasUnacknowledged(); }));

  before = sent();
  client->association->Flush();
  EXPECT_EQ(sent(), before) << "nothing waits";
}

TEST_F(VirtualSctpTest, AThreadThatSpinsOnTwoAssociationsWakesNobody) {
  Listen();
  const std::shared_ptr<Recorder> ours[] = {Connect(), Connect()};
  ASSERT_TRUE(Until([&] { return ours[0]->up && ours[1]->up && acceptor_->accepted.size() == 2; }));
  world_.network().RunFor(seconds(1));
  const uint64_t wake_ups = ours[0]->wake_ups + ours[1]->wake_ups;
  const uint64_t posts = world_.stack().counters().posts;
  for (int i = 0; i < 100; ++i) {
    for (auto& theirs : acceptor_->accepted) {
      theirs->Queue(0, 1, Pattern(100, 1));
      theirs->association->Lend();  // all hosts share what is counted
    }
    // Whichever is looked at first takes in what comes for both.
    for (int round = 0; round < 1000 && ours[0]->messages.size() + ours[1]->messages.size() < size_t{2} * (i + 1); ++round) {
      ASSERT_TRUE(world_.network().Step());
      for (auto& one : ours) {
        if (one->association->Poll().read) one->Receive();
        one->association->Lend();
      }
    }
  }
  EXPECT_EQ(ours[0]->messages.size(), 100u);
  EXPECT_EQ(ours[1]->messages.size(), 100u);
  EXPECT_EQ(ours[0]->wake_ups + ours[1]->wake_ups, wake_ups);
  EXPECT_EQ(world_.stack().counters().posts, posts);
}

TEST_F(VirtualSctpTest, AShutDownAssociationDeliversEverythingFirst) {
  auto client = Pair({.send_buffer = 1 << 21});
  for (int i = 0; i < 100; ++i) client->Queue(1, i, Pattern(10'000, static_cast<uint8_t>(i)));
  ASSERT_TRUE(client->all_sent());
  client->association->Shutdown();
  ASSERT_TRUE(Until([&] { return peer().over() && client->over(); }));
  EXPECT_TRUE(peer().ended);
  EXPECT_TRUE(client->ended);
  EXPECT_EQ(peer().messages.size(), 100u);
  EXPECT_EQ(peer().events.back().kind, Event::Kind::kPeerShutsDown);
  uint8_t byte = 0;
  const iovec piece{.iov_base = &byte, .iov_len = 1};
  EXPECT_EQ(client->association->Send({.pieces = {&piece, 1}}).error, EPIPE);
}

TEST_F(VirtualSctpTest, AnAbortIsAResetAtThePeer) {
  auto client = Pair();
  client->association->Abort("enough");
  ASSERT_TRUE(Until([&] { return peer().over() && client->over(); }));
  EXPECT_EQ(peer().error, ECONNRESET);
  EXPECT_EQ(client->error, ECONNABORTED);
}

TEST_F(VirtualSctpTest, AnAssociationThatIsDroppedIsAbortedAndOneThatWasShutDownIsNot) {
  Listen();
  auto one = Connect(), two = Connect();
  ASSERT_TRUE(Until([&] { return acceptor_->accepted.size() == 2 && one->up && two->up; }));
  two->Queue(0, 2, {2});
  two->association->Shutdown();
  one->association.reset();
  two->association.reset();
  ASSERT_TRUE(Until([&] { return acceptor_->accepted[0]->over() && acceptor_->accepted[1]->over(); }));
  const bool first_is_one = acceptor_->accepted[0]->error != 0;
  EXPECT_EQ(acceptor_->accepted[first_is_one ? 0 : 1]->error, ECONNRESET);
  EXPECT_TRUE(acceptor_->accepted[first_is_one ? 1 : 0]->ended);
  EXPECT_EQ(acceptor_->accepted[first_is_one ? 1 : 0]->messages.size(), 1u);
}

TEST_F(VirtualSctpTest, NobodyListeningIsARefusal) {
  auto client = Connect();
  ASSERT_TRUE(Until([&] { return client->over(); }, milliseconds(400)));
  EXPECT_EQ(client->error, ECONNREFUSED);
}

TEST_F(VirtualSctpTest, NobodyAnsweringTimesOutWithinTheSettings) {
  world_.network().SetDefaultLink({.lose_datagram = 1});
  const auto began = world_.network().Now();
  auto client = Connect({.association_max_retransmissions = 3});
  ASSERT_TRUE(Until([&] { return client->over(); }));
  EXPECT_EQ(client->error, ETIMEDOUT);
  EXPECT_LT(world_.network().Now() - began, milliseconds(500 + 1000 + 2000 + 2000 + 500));
}

TEST_F(VirtualSctpTest, APeerThatDiesIsNoticedWithinTheSettings) {
  Settings settings{.association_max_retransmissions = 4};
  auto client = Pair(settings);
  const auto died = world_.network().Now();
  world_.network().SetDefaultLink({.lose_datagram = 1});
  client->Queue(0, 0, Pattern(1000, 0));
  ASSERT_TRUE(Until([&] { return client->over() && peer().over(); }));
  EXPECT_EQ(client->error, ETIMEDOUT);
  EXPECT_EQ(peer().error, ETIMEDOUT) << "heartbeats are not answered either";
  EXPECT_LT(world_.network().Now() - died, seconds(20));
}

TEST_F(VirtualSctpTest, IPv6WorksAsWell) {
  Listen({}, "fd01::2");
  auto client = Connect({}, {"fd01::2"});
  ASSERT_TRUE(Until([&] { return client->up.has_value(); }));
  client->Queue(0, 1, Pattern(5000, 9));
  ASSERT_TRUE(Until([&] { return !acceptor_->accepted.empty() && peer().messages.size() == 1; }));
  EXPECT_EQ(peer().messages[0].bytes, Pattern(5000, 9));
  EXPECT_EQ(client->association->LocalAddresses().at(0).host(), "fd01::1");
}

TEST_F(VirtualSctpTest, NothingIsLostReorderedOrRepeatedOnARoughLink) {
  for (uint64_t round = 0; round < 5; ++round) {
    sim::Random random(seed_ * 1000 + round);
    world_.network().SetDefaultLink({.jitter = milliseconds(random.Between(0, 3)),
                                     .lose_datagram = 0.001 * static_cast<double>(random.Between(0, 100)),
                                     .repeat_datagram = 0.001 * static_cast<double>(random.Between(0, 100))});
    Settings settings{.association_max_retransmissions = 50};
    auto client = Pair(settings);
    std::vector<std::vector<uint8_t>> sent[8];
    for (int i = 0; i < 300; ++i) {
      const auto stream = static_cast<uint16_t>(random.Between(0, 7));
      const auto bytes =
          Pattern(random.Between(1, random.Chance(0.1) ? 60'000 : 3000), static_cast<uint8_t>(random.Next()));
      sent[stream].push_back(bytes);
      client->Queue(stream, 1, bytes);
    }
    ASSERT_TRUE(Until([&] { return peer().messages.size() == 300 || client->over() || peer().over(); },
                      std::chrono::minutes(10)))
        << "seed " << seed_ << " round " << round << " got " << peer().messages.size();
    ASSERT_FALSE(client->over() || peer().over())
        << "seed " << seed_ << " round " << round << " " << client->error << " " << peer().error;
    size_t next[8] = {};
    for (const auto& message : peer().messages) {
      const uint16_t stream = message.info.stream;
      ASSERT_LT(next[stream], sent[stream].size());
      ASSERT_EQ(message.bytes, sent[stream][next[stream]])
          << "seed " << seed_ << " round " << round << " stream " << stream;
      ASSERT_EQ(message.info.ssn, next[stream]++);
    }
    client.reset();
    acceptor_.reset();
    world_.network().SetDefaultLink(sim::LinkFaults{});
    world_.network().RunFor(seconds(1));
  }
}

TEST(VirtualSctpSeed, TheSameSeedGivesTheSamePackets) {
  const auto run = [] {
    VirtualSctp world(7);
    world.network().SetDefaultLink({.jitter = milliseconds(1), .lose_datagram = 0.05});
    Sctp& a = world.AddHost({"10.1.0.1"});
    Sctp& b = world.AddHost({"10.1.0.2"});
    auto acceptor = Acceptor::Of(b.Listen(*SocketAddress::Parse("10.1.0.2", kPort), 1, {}).value());
    auto client = Recorder::Of(a.Connect({{*SocketAddress::Parse("10.1.0.2", kPort)}, kUdpPort}, 0, {}).value());
    for (int i = 0; i < 100; ++i) client->Queue(0, 0, Pattern(5000, 1));
    world.network().RunFor(seconds(10));
    const auto counters = world.stack().counters();
    return std::make_tuple(acceptor->accepted.size(), counters.packets_in, counters.packets_out, client->wake_ups);
  };
  const auto first = run();
  EXPECT_EQ(run(), first);
  EXPECT_EQ(std::get<0>(first), 1u);
}

TEST_F(VirtualSctpTest, AnAssociationGoesOverToTheOtherPathAndBack) {
  Settings both_client{.local_addresses = {*SocketAddress::Parse("10.1.0.1", 0), *SocketAddress::Parse("10.2.0.1", 0)}};
  Settings both_server{.local_addresses = {*SocketAddress::Parse("10.1.0.2", 0), *SocketAddress::Parse("10.2.0.2", 0)}};
  Listen(both_server);
  auto client = Connect(both_client);
  ASSERT_TRUE(Until([&] { return client->up && !acceptor_->accepted.empty() && peer().up; }));
  const auto active = [&] {
    const auto paths = client->association->Paths();
    return std::count_if(paths.begin(), paths.end(), [](const Path& path) { return path.state == PathState::kActive; });
  };
  ASSERT_TRUE(Until([&] { return active() == 2; })) << "the second is confirmed by a heartbeat";
  const auto cut = [&](double lose) {
    world_.network().SetLink("10.1.0.1", "10.1.0.2", {.lose_datagram = lose});
    world_.network().SetLink("10.1.0.2", "10.1.0.1", {.lose_datagram = lose});
  };
  cut(1);
  const auto began = world_.network().Now();
  for (int i = 0; i < 50; ++i) client->Queue(0, 0, Pattern(1000, static_cast<uint8_t>(i)));
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 50; }));
  EXPECT_LT(world_.network().Now() - began, seconds(2));
  ASSERT_TRUE(Until([&] { return active() == 1; }));
  auto paths = client->association->Paths();
  ASSERT_EQ(paths.size(), 2u);
  const bool first = paths[0].address.host() == "10.1.0.2";
  EXPECT_EQ(paths[first ? 0 : 1].state, PathState::kInactive);
  EXPECT_EQ(paths[first ? 0 : 1].failures, 1u);
  EXPECT_GT(paths[first ? 1 : 0].bytes_out, 50'000u);
  cut(0);
  ASSERT_TRUE(Until([&] { return active() == 2; }));
  EXPECT_FALSE(client->over() || peer().over());
}

TEST_F(VirtualSctpTest, ConcurrentTransferUsesBothPaths) {
  const auto both = [](const char* last) {
    return Settings{.local_addresses = {*SocketAddress::Parse(std::string("10.1.0.") + last, 0),
                                        *SocketAddress::Parse(std::string("10.2.0.") + last, 0)},
                    .multipath = Multipath::kConcurrentPotentiallyFailed};
  };
  world_.network().SetDefaultLink({.delay = milliseconds(1)});
  Listen(both("2"));
  auto client = Connect(both("1"));
  ASSERT_TRUE(Until([&] { return client->up.has_value(); }));
  world_.network().RunFor(seconds(3));
  for (int i = 0; i < 1000; ++i) client->Queue(0, 0, Pattern(10'000, 0));
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 1000; }));
  for (const Path& path : client->association->Paths()) {
    EXPECT_GT(path.bytes_out, 3'000'000u) << path.address.ToString();
    EXPECT_EQ(path.state, PathState::kActive);
  }
}

class VirtualSctpCut : public VirtualSctpTest, public testing::WithParamInterface<std::tuple<Multipath, uint64_t>> {
 protected:
  VirtualSctpCut() : VirtualSctpTest(std::get<1>(GetParam())) {}
};

TEST_P(VirtualSctpCut, ThePathThatIsSilentHoldsTheOtherUpForItsFirstTimeoutsOnly) {
  const Multipath mode = std::get<0>(GetParam());
  const auto both = [mode](const char* last) {
    return Settings{.local_addresses = {*SocketAddress::Parse(std::string("10.1.0.") + last, 0),
                                        *SocketAddress::Parse(std::string("10.2.0.") + last, 0)},
                    .multipath = mode,
                    .send_buffer = 300'000,
                    .receive_buffer = 300'000};
  };
  world_.network().SetDefaultLink({.delay = milliseconds(20)});
  Listen(both("2"));
  auto client = Connect(both("1"));
  ASSERT_TRUE(Until([&] { return client->up && !acceptor_->accepted.empty(); }));
  world_.network().RunFor(seconds(3));
  peer().keep = false;
  auto last = world_.network().Now();
  Duration longest{0};
  uint64_t received = 0;
  peer().then = [&](Recorder& recorder) {
    if (std::exchange(received, recorder.bytes_received) == recorder.bytes_received) return;
    longest = std::max(longest, world_.network().Now() - std::exchange(last, world_.network().Now()));
  };
  // The program always has something to send.
  client->Queue(0, 0, Pattern(10'000, 0));
  client->then = [&](Recorder& recorder) {
    while (recorder.all_sent() && !recorder.over()) {
      recorder.waiting.clear();
      recorder.next = 0;
      recorder.Queue(0, 0, Pattern(10'000, 0));
    }
  };
  client->then(*client);
  const auto cut = [&](double lose) {
    world_.network().SetLink("10.1.0.1", "10.1.0.2", {.delay = milliseconds(20), .lose_datagram = lose});
    world_.network().SetLink("10.1.0.2", "10.1.0.1", {.delay = milliseconds(20), .lose_datagram = lose});
  };
  world_.network().RunFor(milliseconds(500));
  cut(1);
  // In plain concurrent transfer it is sent to until it is inactive: four timeouts, each twice as long as the one
  // before. The last packet may wait for one more.
  world_.network().RunFor(seconds(5));
  EXPECT_LT(longest, mode == Multipath::kConcurrent ? milliseconds(2000) : milliseconds(500));
  longest = {};
  world_.network().RunFor(seconds(10));
  EXPECT_LT(longest, milliseconds(200)) << "nobody sends on a path that is inactive";
  const auto paths = client->association->Paths();
  EXPECT_EQ(std::count_if(paths.begin(), paths.end(), [](const Path& p) { return p.state == PathState::kInactive; }),
            1);
  cut(0);
  world_.network().RunFor(seconds(1));
  EXPECT_LT(longest, milliseconds(200));
  for (const Path& path : client->association->Paths()) EXPECT_EQ(path.state, PathState::kActive);
  client->then = nullptr;
  EXPECT_FALSE(client->over() || peer().over());
}

INSTANTIATE_TEST_SUITE_P(Modes, VirtualSctpCut,
                         testing::Combine(testing::Values(Multipath::kFailover, Multipath::kConcurrent,
                                                          Multipath::kConcurrentPotentiallyFailed),
                                          testing::Range<uint64_t>(0, 10)));

TEST_F(VirtualSctpTest, APeerThatDoesNotReadBlocksTheSenderInBoundedMemory) {
  Settings settings{.send_buffer = 200'000, .receive_buffer = 300'000};
  auto client = Pair(settings);
  peer().association->SetReading(false);
  std::vector<uint8_t> bytes = Pattern(10'000, 0);
  const iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  uint64_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    const IoResult sent = client->association->Send({.pieces = {&piece, 1}});
    ASSERT_NE(sent.kind, IoResult::Kind::kFailed) << sent.error;
    taken += sent.bytes;
    if (sent.kind == IoResult::Kind::kWouldBlock) world_.network().RunFor(milliseconds(50));
  }
  EXPECT_GE(taken, 200'000u);
  EXPECT_LE(taken, 600'000u);
  EXPECT_EQ(peer().bytes_received, 0u);
  const uint64_t before = client->wake_ups;
  peer().association->SetReading(true);
  ASSERT_TRUE(Until([&] { return peer().bytes_received == taken && client->wake_ups > before; }));
  EXPECT_FALSE(client->over());
}

TEST_F(VirtualSctpTest, ALongMessageIsTakenInPartsAndReceivedAsOne) {
  Settings settings{.send_buffer = 100'000, .receive_buffer = 100'000};
  auto client = Pair(settings);
  const auto bytes = Pattern(1'000'000, 7);
  const iovec whole{.iov_base = const_cast<uint8_t*>(bytes.data()), .iov_len = bytes.size()};
  EXPECT_EQ(client->association->Send({.pieces = {&whole, 1}}).error, EMSGSIZE);
  size_t offset = 0;
  const auto more = [&] {
    while (offset < bytes.size()) {
      const size_t length = std::min<size_t>(40'000, bytes.size() - offset);
      const iovec piece{.iov_base = const_cast<uint8_t*>(bytes.data()) + offset, .iov_len = length};
      const IoResult sent = client->association->Send(
          {.stream = 2, .ppid = 4, .end_of_record = offset + length == bytes.size(), .pieces = {&piece, 1}});
      ASSERT_NE(sent.kind, IoResult::Kind::kFailed) << strerror(sent.error);
      if (sent.kind == IoResult::Kind::kWouldBlock) return;
      offset += sent.bytes;
      if (sent.bytes < length) return;
    }
  };
  client->then = [&](Recorder&) { more(); };
  more();
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 1; })) << offset << " " << peer().bytes_received;
  EXPECT_EQ(peer().messages[0].bytes, bytes);
  EXPECT_EQ(peer().messages[0].info.stream, 2);
  client->then = nullptr;
  client->Queue(2, 5, {1, 2, 3});
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 2; }));
  EXPECT_EQ(peer().messages[1].bytes, (std::vector<uint8_t>{1, 2, 3}));
}

TEST_F(VirtualSctpTest, ATransferOverAThousandStreamsKeepsEachInOrder) {
  auto client = Pair({.streams_out = 1000, .streams_in = 1000});
  for (int round = 0; round < 3; ++round) {
    for (uint16_t stream = 0; stream < 1000; ++stream)
      client->Queue(stream, static_cast<uint32_t>(round), {static_cast<uint8_t>(round)});
  }
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 3000; }));
  std::vector<uint16_t> next(1000);
  for (const auto& message : peer().messages) EXPECT_EQ(message.info.ssn, next[message.info.stream]++);
  const uint8_t byte = 0;
  const iovec piece{.iov_base = const_cast<uint8_t*>(&byte), .iov_len = 1};
  EXPECT_EQ(client->association->Send({.stream = 1000, .pieces = {&piece, 1}}).error, EINVAL);
}

TEST_F(VirtualSctpTest, AThousandAssociationsAtOnce) {
  Listen({.streams_out = 4, .streams_in = 4}, "10.1.0.2", 1000);
  std::vector<std::shared_ptr<Recorder>> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(Connect({.streams_out = 4, .streams_in = 4}));
    clients.back()->Queue(1, static_cast<uint32_t>(i), Pattern(100, static_cast<uint8_t>(i)));
  }
  const auto arrived = [&] {
    return std::count_if(acceptor_->accepted.begin(), acceptor_->accepted.end(),
                         [](const auto& one) { return one->messages.size() == 1; });
  };
  ASSERT_TRUE(Until([&] { return arrived() == 1000; })) << arrived() << " of " << acceptor_->accepted.size();
  clients.clear();
  ASSERT_TRUE(Until([&] {
    return std::all_of(acceptor_->accepted.begin(), acceptor_->accepted.end(),
                       [](const auto& one) { return one->error == ECONNRESET; });
  }));
}

TEST_F(VirtualSctpTest, AFullBacklogIsARefusal) {
  auto listener = server_->Listen(*SocketAddress::Parse("10.1.0.2", kPort), 2, {});
  ASSERT_TRUE(listener.ok());
  std::vector<std::shared_ptr<Recorder>> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(Connect());
  ASSERT_TRUE(Until([&] {
    return std::all_of(clients.begin(), clients.end(), [](const auto& one) { return one->up || one->over(); });
  }));
  const auto up =
      std::count_if(clients.begin(), clients.end(), [](const auto& one) { return one->up && !one->over(); });
  EXPECT_GE(up, 2);
  EXPECT_LE(up, 4);
}

TEST_F(VirtualSctpTest, APeerThatForgotEverythingRestartsTheAssociation) {
  Listen();
  Settings settings;
  Peer peer{.addresses = {*SocketAddress::Parse("10.1.0.2", kPort)}, .udp_port = kUdpPort};
  auto first = Recorder::Of(client_->Connect(peer, 4000, settings).value());
  ASSERT_TRUE(Until([&] { return first->up && !acceptor_->accepted.empty() && this->peer().up; }));
  first->Queue(0, 1, {1});
  ASSERT_TRUE(Until([&] { return this->peer().messages.size() == 1; }));
  // What it said at its end is lost, as that of a host that was switched off.
  world_.network().SetDefaultLink({.lose_datagram = 1});
  first->association.reset();
  world_.network().RunFor(milliseconds(1));
  world_.network().SetDefaultLink(sim::LinkFaults{});
  settings.adaptation = 5;
  auto second = Recorder::Of(client_->Connect(peer, 4000, settings).value());
  ASSERT_TRUE(Until([&] { return second->up.has_value(); }));
  second->Queue(0, 2, {2});
  ASSERT_TRUE(Until([&] { return this->peer().messages.size() == 2; }));
  ASSERT_EQ(this->peer().events.back().kind, Event::Kind::kRestarted);
  EXPECT_EQ(this->peer().events.back().adaptation, 5u) << "what it says of itself now";
  EXPECT_EQ(this->peer().messages[1].info.ssn, 0);
  EXPECT_EQ(acceptor_->accepted.size(), 1u);
}

TEST_F(VirtualSctpTest, TwoEndsThatConnectToEachOthersListenersGetOneAssociation) {
  const Settings settings{.share_port = true};
  Listen(settings);
  auto other = Acceptor::Of(client_->Listen(*SocketAddress::Parse("10.1.0.1", kPort), 4, settings).value());
  auto one =
      Recorder::Of(client_->Connect({{*SocketAddress::Parse("10.1.0.2", kPort)}, kUdpPort}, kPort, settings).value());
  auto two =
      Recorder::Of(server_->Connect({{*SocketAddress::Parse("10.1.0.1", kPort)}, kUdpPort}, kPort, settings).value());
  ASSERT_TRUE(Until([&] { return one->up && two->up; }));
  one->Queue(0, 1, {1});
  two->Queue(0, 2, {2});
  ASSERT_TRUE(Until([&] { return one->messages.size() == 1 && two->messages.size() == 1; }));
  EXPECT_TRUE(acceptor_->accepted.empty());
  EXPECT_TRUE(other->accepted.empty());
}

// Hosts whose addresses are not told apart by their links: what leaves has to bear an address that the association
// knows.
TEST_F(VirtualSctpTest, OnlyAddressesThatWereBoundAreUsed) {
  Listen({}, "10.2.0.2");
  auto client = Connect({.local_addresses = {*SocketAddress::Parse("10.1.0.1", 0)}}, {"10.2.0.2"});
  ASSERT_TRUE(Until([&] { return client->up && !acceptor_->accepted.empty(); }));
  client->Queue(0, 0, Pattern(3000, 1));
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 1; }));
  peer().Queue(0, 0, Pattern(3000, 2));
  ASSERT_TRUE(Until([&] { return client->messages.size() == 1; }));
  EXPECT_EQ(peer().association->PeerAddresses().at(0).host(), "10.1.0.1");
  EXPECT_EQ(world_.stack().counters().strangers, 0u);
}

// From the peer's address and UDP port, with right ports and checksums: whoever can forge that much knows no
// verification tag.
TEST_F(VirtualSctpTest, GarbageFromWhoKnowsAllButTheTagsHarmsNobody) {
  auto client = Pair();
  sim::Random random(seed_);
  const uint16_t local = client->association->LocalAddresses().at(0).port();
  auto forger = world_.network().AddHost({"10.9.9.9"}).OpenDatagram(*SocketAddress::Parse("10.9.9.9", kUdpPort), {});
  ASSERT_TRUE(forger.ok());
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> packet(random.Between(16, random.Chance(0.9) ? 200 : 1400));
    for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random.Next());
    packet[0] = static_cast<uint8_t>(local >> 8), packet[1] = static_cast<uint8_t>(local);
    packet[2] = kPort >> 8, packet[3] = kPort & 0xff;
    packet[12] =
        static_cast<uint8_t>(random.Chance(0.9) ? random.Between(0, 15) : random.Next());  // of the first chunk
    if (packet[12] == 1 && random.Chance(0.5)) std::fill(packet.begin() + 4, packet.begin() + 8, 0);  // INIT has no tag
    if (random.Chance(0.8)) {
      packet[14] = static_cast<uint8_t>((packet.size() - 12) >> 8);
      packet[15] = static_cast<uint8_t>(packet.size() - 12);
    }
    std::fill(packet.begin() + 8, packet.begin() + 12, 0);
    StoreCrc32c(packet.data() + 8, Crc32c(packet));
    const iovec piece{.iov_base = packet.data(), .iov_len = packet.size()};
    const OutgoingDatagram datagram{.to = *SocketAddress::Parse("10.1.0.2", kUdpPort),
                                    .from = *SocketAddress::Parse("10.1.0.1", 0),
                                    .pieces = {&piece, 1}};
    int error = 0;
    ASSERT_EQ((*forger)->Send({&datagram, 1}, &error), 1u);
    if (i % 100 == 0) world_.network().RunFor(milliseconds(1));
    if (i % 1000 == 0) client->Queue(0, 1, Pattern(5000, static_cast<uint8_t>(i)));
  }
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 20 || client->over() || peer().over(); }))
      << "seed " << seed_;
  EXPECT_FALSE(client->over() || peer().over()) << "seed " << seed_ << " " << client->error << " " << peer().error;
  EXPECT_EQ(acceptor_->accepted.size(), 1u);
  EXPECT_EQ(peer().events.back().kind == Event::Kind::kRestarted, false);
}

// The same from a peer that is one, and lies: its packets are changed on the way, and bear a right checksum again.
TEST_F(VirtualSctpTest, APeerThatSendsNonsenseEndsItsOwnAssociationAtMost) {
  Listen();
  auto good = Connect();
  ASSERT_TRUE(Until([&] { return good->up && !acceptor_->accepted.empty(); }));
  const size_t at_first = acceptor_->accepted.size();
  sim::Random random(seed_);
  uint64_t changed = 0;
  for (int round = 0; round < 30; ++round) {
    auto liar = Connect({.association_max_retransmissions = 3});
    const uint16_t port = liar->association->LocalAddresses().at(0).port();
    world_.network().SetDatagramChange([&, port](std::vector<uint8_t>& packet) {
      if (packet[0] != port >> 8 || packet[1] != (port & 0xff) || !random.Chance(0.3)) return;
      for (uint64_t n = random.Between(1, 4); n > 0; --n)
        packet[random.Between(12, packet.size() - 1)] = static_cast<uint8_t>(random.Next());
      std::fill(packet.begin() + 8, packet.begin() + 12, 0);
      StoreCrc32c(packet.data() + 8, Crc32c(packet));
      ++changed;
    });
    for (int i = 0; i < 20; ++i)
      liar->Queue(static_cast<uint16_t>(i % 4), 1, Pattern(random.Between(1, 5000), 3), random.Chance(0.3));
    world_.network().RunFor(seconds(3));
    world_.network().SetDatagramChange(nullptr);
  }
  EXPECT_GT(changed, 100u);
  good->Queue(0, 9, {9});
  const auto arrived = [&] {
    return std::any_of(acceptor_->accepted.begin(), acceptor_->accepted.end(),
                       [](const auto& one) { return !one->messages.empty() && one->messages.back().info.ppid == 9; });
  };
  ASSERT_TRUE(Until(arrived)) << "seed " << seed_;
  EXPECT_FALSE(good->over());
  EXPECT_GE(acceptor_->accepted.size(), at_first);
}

// Another process of the peer's host, or one that forges its address: it knows the ports, and no cookie of the server's.
class StrangerOnThePeersHost : public VirtualSctpTest {
 protected:
  void SetUp() override {
    VirtualSctpTest::SetUp();
    auto socket = world_.network().AddHost({"10.9.9.9"}).OpenDatagram(*SocketAddress::Parse("10.9.9.9", 4444), {});
    ASSERT_TRUE(socket.ok());
    socket_ = std::move(*socket);
  }
  // One chunk from the client's address and `port` of SCTP to the server.
  void Send(uint16_t port, uint8_t chunk, uint32_t tag, const std::vector<uint8_t>& body) {
    std::vector<uint8_t> packet(16);
    packet[0] = static_cast<uint8_t>(port >> 8), packet[1] = static_cast<uint8_t>(port);
    packet[2] = kPort >> 8, packet[3] = kPort & 0xff;
    std::memcpy(&packet[4], &tag, sizeof tag);
    packet[12] = chunk;
    packet[14] = static_cast<uint8_t>((body.size() + 4) >> 8), packet[15] = static_cast<uint8_t>(body.size() + 4);
    packet.insert(packet.end(), body.begin(), body.end());
    StoreCrc32c(packet.data() + 8, Crc32c(packet));
    const iovec piece{.iov_base = packet.data(), .iov_len = packet.size()};
    const OutgoingDatagram datagram{.to = *SocketAddress::Parse("10.1.0.2", kUdpPort),
                                    .from = *SocketAddress::Parse("10.1.0.1", 0),
                                    .pieces = {&piece, 1}};
    int error = 0;
    ASSERT_EQ(socket_->Send({&datagram, 1}, &error), 1u);
  }

  std::unique_ptr<DatagramSocket> socket_;
};

TEST_F(StrangerOnThePeersHost, AForgedCookieEchoKeepsNobodyOut) {
  Listen();
  auto client = Connect();
  const uint16_t local = client->association->LocalAddresses().at(0).port();
  for (int i = 0; i < 3; ++i) Send(local, 10, 0x12345678, Pattern(200, static_cast<uint8_t>(i)));
  ASSERT_TRUE(Until([&] { return (client->up && !acceptor_->accepted.empty()) || client->over(); }, seconds(5)));
  EXPECT_FALSE(client->over()) << client->error;
  EXPECT_EQ(world_.stack().counters().strangers, 0u);
}

// From the COOKIE ACK on the association has a UDP port, though nobody has accepted it yet.
TEST_F(StrangerOnThePeersHost, AnAssociationThatIsNotAcceptedYetIsNotTheirs) {
  auto listener = server_->Listen(*SocketAddress::Parse("10.1.0.2", kPort), 16, {});
  ASSERT_TRUE(listener.ok());
  auto client = Connect();
  ASSERT_TRUE(Until([&] { return client->up.has_value(); }));
  const uint16_t local = client->association->LocalAddresses().at(0).port();
  Send(local, 1, 0, {1, 2, 3, 4, 0, 2, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1});  // INIT: tag, window, streams, TSN
  world_.network().RunFor(milliseconds(10));
  EXPECT_EQ(world_.stack().counters().strangers, 1u);
  acceptor_ = Acceptor::Of(std::move(*listener));
  client->Queue(0, 0, Pattern(100, 1));
  ASSERT_TRUE(Until([&] { return !acceptor_->accepted.empty() && peer().messages.size() == 1; }));
}

TEST_F(VirtualSctpTest, AStrangerOnThePeersHostGetsNothingAndChangesNothing) {
  auto client = Pair();
  client->Queue(0, 0, Pattern(100, 1));
  ASSERT_TRUE(Until([&] { return peer().messages.size() == 1; }));
  // A well-formed packet with the right addresses and ports, from another UDP port of the client's host.
  auto& network = world_.network();
  const uint16_t local = client->association->LocalAddresses().at(0).port();
  std::vector<uint8_t> packet(16 + 4);
  packet[0] = static_cast<uint8_t>(local >> 8), packet[1] = static_cast<uint8_t>(local);
  packet[2] = kPort >> 8, packet[3] = kPort & 0xff;
  packet[12] = 11;  // COOKIE ACK
  packet[15] = 4;
  packet.resize(16);
  StoreCrc32c(packet.data() + 8, Crc32c(packet));
  auto stranger = network.AddHost({"10.9.9.9"}).OpenDatagram(*SocketAddress::Parse("10.9.9.9", 4444), {});
  ASSERT_TRUE(stranger.ok());
  const iovec piece{.iov_base = packet.data(), .iov_len = packet.size()};
  OutgoingDatagram datagram{.to = *SocketAddress::Parse("10.1.0.2", kUdpPort),
                            .from = *SocketAddress::Parse("10.1.0.1", 0),
                            .pieces = {&piece, 1}};
  int error = 0;
  ASSERT_EQ((*stranger)->Send({&datagram, 1}, &error), 1u);
  network.RunFor(milliseconds(10));
  EXPECT_EQ(world_.stack().counters().strangers, 1u);
  peer().Queue(0, 0, Pattern(100, 2));
  ASSERT_TRUE(Until([&] { return client->messages.size() == 1; }));
}

}  // namespace
}  // namespace weft::transport::sctp
