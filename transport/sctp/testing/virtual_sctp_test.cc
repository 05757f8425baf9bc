#include "transport/sctp/testing/virtual_sctp.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <string>

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
  bool Until(const std::function<bool()>& done, Duration most = seconds(60)) { return world_.network().RunUntil(done, most); }
  Recorder& peer() { return *acceptor_->accepted.at(0); }

  // Both ends, up.
  std::shared_ptr<Recorder> Pair(Settings settings = {}) {
    Listen(settings);
    auto client = Connect(settings);
    EXPECT_TRUE(Until([&] { return client->up && !acceptor_->accepted.empty() && peer().up; }));
    return client;
  }

  const uint64_t seed_ = testing::UnitTest::GetInstance()->random_seed() != 0 ? testing::UnitTest::GetInstance()->random_seed() : 1;
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

}  // namespace
}  // namespace weft::transport::sctp
