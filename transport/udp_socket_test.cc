#include "transport/udp_socket.h"

#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <string>
#include <vector>

namespace weft::transport {
namespace {

SocketAddress Address(const std::string& host, uint16_t port = 0) { return SocketAddress::Parse(host, port).value(); }

std::unique_ptr<DatagramSocket> Open(const std::string& host, const DatagramOptions& options = {}, uint16_t port = 0) {
  auto socket = UdpSocket::Open(Address(host, port), options);
  EXPECT_TRUE(socket.ok()) << (socket.ok() ? 0 : socket.error());
  return socket.ok() ? std::move(socket.value()) : nullptr;
}

void SendText(DatagramSocket& socket, const std::string& text, const SocketAddress& to, const SocketAddress& from = {},
              uint32_t interface = 0) {
  const iovec piece{const_cast<char*>(text.data()), text.size()};
  const OutgoingDatagram datagram{to, from, interface, {&piece, 1}};
  int error = 0;
  EXPECT_EQ(socket.Send({&datagram, 1}, &error), 1u) << error;
}

struct Came {
  std::string text;
  IncomingDatagram about;
};

// What one look brings, after waiting for the first.
std::vector<Came> ReceiveAll(DatagramSocket& socket, size_t room = 2000, int wait_ms = 5000) {
  pollfd ready{socket.fd(), POLLIN, 0};
  poll(&ready, 1, wait_ms);
  std::vector<std::string> bytes(40, std::string(room, '\0'));
  std::vector<IncomingDatagram> into(40);
  for (size_t i = 0; i < into.size(); ++i) into[i].room = {bytes[i].data(), room};
  std::vector<Came> came;
  const size_t count = socket.Receive(into);
  for (size_t i = 0; i < count; ++i) came.push_back({bytes[i].substr(0, into[i].length), into[i]});
  return came;
}

TEST(UdpSocket, OneOnTheWildcardSpeaksBothFamiliesAndSaysWhichAddressWasMeant) {
  auto server = Open("::");
  const uint16_t port = server->LocalAddress().port();
  auto v4 = Open("127.0.0.1"), v6 = Open("::1");
  SendText(*v4, "four", Address("127.0.0.1", port));
  auto came = ReceiveAll(*server);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].text, "four");
  EXPECT_EQ(came[0].about.from, v4->LocalAddress());
  EXPECT_EQ(came[0].about.to, Address("127.0.0.1"));
  EXPECT_EQ(came[0].about.interface, if_nametoindex("lo"));
  SendText(*v6, "six", Address("::1", port));
  came = ReceiveAll(*server);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].about.from, v6->LocalAddress());
  EXPECT_EQ(came[0].about.to, Address("::1"));
}

TEST(UdpSocket, SourceIsTheOneThatTheDatagramNames) {
  auto server = Open("127.0.0.1"), client = Open("::");
  SendText(*client, "x", server->LocalAddress(), Address("127.0.0.5"));
  auto came = ReceiveAll(*server);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].about.from, Address("127.0.0.5", client->LocalAddress().port()));
}

TEST(UdpSocket, SendsAndReceivesManyInOneGo) {
  auto server = Open("::"), client = Open("::");
  const SocketAddress to = Address("127.0.0.1", server->LocalAddress().port());
  std::vector<std::string> texts;
  for (int i = 0; i < 70; ++i) texts.push_back(std::to_string(i));
  std::vector<iovec> pieces;
  for (std::string& text : texts) pieces.push_back({text.data(), text.size()});
  std::vector<OutgoingDatagram> out;
  for (iovec& piece : pieces) out.push_back({to, {}, 0, {&piece, 1}});
  int error = 0;
  EXPECT_EQ(client->Send(out, &error), 70u);
  size_t next = 0;
  while (next < 70) {
    auto came = ReceiveAll(*server);
    ASSERT_FALSE(came.empty());
    for (const Came& one : came) EXPECT_EQ(one.text, texts[next++]);
  }
}

// Each as it was sent, whatever trains they came in.
std::vector<std::string> ReceiveTrains(DatagramSocket& socket, size_t* trains) {
  std::vector<std::string> texts;
  for (const Came& came : ReceiveAll(socket, 65536, 200)) {
    EXPECT_FALSE(came.about.cut_off);
    const size_t each = came.about.each != 0 ? came.about.each : came.text.size();
    *trains += came.about.each != 0;
    for (size_t at = 0; at < came.text.size(); at += each) texts.push_back(came.text.substr(at, each));
  }
  return texts;
}

TEST(UdpSocket, DatagramsOfOneLengthToOnePlaceTravelAsATrain) {
  for (const bool trains : {true, false}) {
    for (const char* host : {"127.0.0.1", "::1"}) {
      auto server = Open("::", {.trains = trains}), other = Open("::", {.trains = trains}), client = Open("::", {.trains = true});
      const SocketAddress to = Address(host, server->LocalAddress().port()), elsewhere = Address(host, other->LocalAddress().port());
      std::vector<std::string> texts;
      for (int i = 0; i < 100; ++i) texts.push_back(std::string(i == 30 ? 700 : i == 40 ? 1400 : 1000, static_cast<char>('a' + i % 26)));
      std::vector<iovec> pieces;
      for (std::string& text : texts) pieces.push_back({text.data(), text.size()});
      std::vector<OutgoingDatagram> out;
      for (size_t i = 0; i < pieces.size(); ++i) out.push_back({i == 50 ? elsewhere : to, {}, 0, {&pieces[i], 1}});
      int error = 0;
      EXPECT_EQ(client->Send(out, &error), 100u) << error;
      std::vector<std::string> got;
      size_t count = 0;
      while (true) {
        const auto some = ReceiveTrains(*server, &count);
        if (some.empty()) break;
        got.insert(got.end(), some.begin(), some.end());
      }
      EXPECT_EQ(count > 0, trains);
      EXPECT_EQ(ReceiveTrains(*other, &count), std::vector<std::string>{texts[50]});
      texts.erase(texts.begin() + 50);
      EXPECT_EQ(got, texts);
    }
  }
}

TEST(UdpSocket, DatagramsThatMustBeFragmentedTravelAlone) {
  auto server = Open("127.0.0.1", {.trains = true}), client = Open("127.0.0.1", {.trains = true});
  int none = IP_PMTUDISC_DONT;
  ASSERT_EQ(setsockopt(client->fd(), IPPROTO_IP, IP_MTU_DISCOVER, &none, sizeof none), 0);
  std::string small(1000, 'a'), large(30000, 'b');
  std::vector<iovec> pieces{{small.data(), 1000}, {small.data(), 1000}, {large.data(), 30000}, {large.data(), 30000}, {small.data(), 1000}};
  std::vector<OutgoingDatagram> out;
  for (iovec& piece : pieces) out.push_back({server->LocalAddress(), {}, 0, {&piece, 1}});
  int error = 0;
  EXPECT_EQ(client->Send(out, &error), 5u) << error;
  std::vector<std::string> got;
  size_t count = 0;
  while (got.size() < 5) {
    const auto some = ReceiveTrains(*server, &count);
    ASSERT_FALSE(some.empty());
    got.insert(got.end(), some.begin(), some.end());
  }
  EXPECT_EQ(got, (std::vector<std::string>{small, small, large, large, small}));
}

TEST(UdpSocket, SaysThatADatagramWasCutOff) {
  auto server = Open("127.0.0.1"), client = Open("127.0.0.1");
  SendText(*client, std::string(100, 'a'), server->LocalAddress());
  auto came = ReceiveAll(*server, 60);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_TRUE(came[0].about.cut_off);
  EXPECT_EQ(came[0].about.length, 60u);
}

TEST(UdpSocket, SaysWhyADatagramDidNotGoAndHowManyDid) {
  auto server = Open("127.0.0.1"), client = Open("::");
  std::string small = "a", large(70000, 'b');
  const iovec pieces[] = {{small.data(), small.size()}, {large.data(), large.size()}};
  const OutgoingDatagram out[] = {{server->LocalAddress(), {}, 0, {&pieces[0], 1}}, {server->LocalAddress(), {}, 0, {&pieces[1], 1}}};
  int error = 0;
  EXPECT_EQ(client->Send(out, &error), 1u);
  EXPECT_EQ(client->Send({&out[1], 1}, &error), 0u);
  EXPECT_EQ(error, EMSGSIZE);
}

TEST(UdpSocket, HearsThatItsPeerRefuses) {
  const SocketAddress nobody = Open("127.0.0.1")->LocalAddress();
  auto client = Open("127.0.0.1", {.peer = nobody});
  SendText(*client, "anyone?", nobody);
  pollfd ready{client->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 5000), 1);
  EXPECT_EQ(client->TakeError(), ECONNREFUSED);
  EXPECT_EQ(client->TakeError(), 0);
}

// Closed, so that nobody has it.
SocketAddress PortOfNobody(const std::string& host) { return Open(host)->LocalAddress(); }

class Refusals : public ::testing::TestWithParam<const char*> {};

TEST_P(Refusals, AreHeardOfWithWhatWasSentAndKeepNothingElseBack) {
  const std::string host = GetParam();
  auto socket = Open("::", {.refusals = true});
  auto alive = Open(host);
  const SocketAddress nobody = PortOfNobody(host);
  SendText(*socket, "is anybody there?", nobody);
  pollfd ready{socket->fd(), POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 5000), 1);
  // What the kernel has to say of it costs no datagram that is sent next, nor one that waits.
  SendText(*socket, "hello", alive->LocalAddress());
  EXPECT_EQ(ReceiveAll(*alive).size(), 1u);
  SendText(*socket, "again", nobody);
  SendText(*alive, "good day", Address(host, socket->LocalAddress().port()));
  EXPECT_EQ(ReceiveAll(*socket).size(), 1u);
  EXPECT_TRUE(socket->MayHaveRefusal());

  std::string room(100, '\0');
  RefusedDatagram refused;
  ASSERT_TRUE(socket->TakeRefusal({room.data(), room.size()}, &refused));
  EXPECT_EQ(refused.to, nobody);
  EXPECT_EQ(refused.from, Address(host));
  EXPECT_EQ(room.substr(0, refused.length), "is anybody there?");
  ASSERT_TRUE(socket->TakeRefusal({room.data(), 3}, &refused));
  EXPECT_EQ(refused.length, 3u);
  EXPECT_EQ(room.substr(0, 3), "aga");
  EXPECT_FALSE(socket->TakeRefusal({room.data(), room.size()}, &refused));
  EXPECT_FALSE(socket->MayHaveRefusal());
  ready.revents = 0;
  EXPECT_EQ(poll(&ready, 1, 0), 0) << "it is ready for nothing: " << ready.revents;
}
INSTANTIATE_TEST_SUITE_P(UdpSocket, Refusals, ::testing::Values("127.0.0.1", "::1"));

TEST(UdpSocket, WhoDoesNotAskHearsOfNoRefusal) {
  auto socket = Open("::");
  SendText(*socket, "x", PortOfNobody("127.0.0.1"));
  pollfd ready{socket->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 50), 0);
  RefusedDatagram refused;
  EXPECT_FALSE(socket->TakeRefusal({}, &refused));
}

TEST(UdpSocket, NothingWaitsIsZero) { EXPECT_TRUE(ReceiveAll(*Open("127.0.0.1"), 100, 0).empty()); }

TEST(UdpSocket, PortInUseIsRefusedUnlessShared) {
  auto first = Open("127.0.0.1", {.shared = true});
  const uint16_t port = first->LocalAddress().port();
  EXPECT_EQ(UdpSocket::Open(Address("127.0.0.1", port), {}).error(), EADDRINUSE);
  EXPECT_NE(Open("127.0.0.1", {.shared = true}, port), nullptr);
}

// The kernel routes IPv4 groups over lo, those of IPv6 only over an interface that says MULTICAST; empty: there is none.
std::string InterfaceFor(const SocketAddress& group) {
  if (group.family() == AF_INET) return "lo";
  ifaddrs* list = nullptr;
  EXPECT_EQ(getifaddrs(&list), 0);
  std::string name;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool usable = (one->ifa_flags & IFF_UP) && (one->ifa_flags & IFF_MULTICAST);
    if (usable && one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET6) name = one->ifa_name;
  }
  freeifaddrs(list);
  return name;
}

class Groups : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(Groups, EveryMemberGetsACopyOfItsOwnGroupOnly) {
  const auto [group, other] = GetParam();
  const std::string name = InterfaceFor(Address(group));
  if (name.empty()) GTEST_SKIP() << "no interface here has IPv6 and multicast";
  const uint32_t interface = if_nametoindex(name.c_str());
  const std::string scope = Address(group).family() == AF_INET6 ? "%" + name : "";
  const uint16_t port = Open("127.0.0.1")->LocalAddress().port();
  DatagramOptions options{.only_v6 = true, .shared = true, .group = Address(group + scope), .interface = interface};
  auto first = Open(group + scope, options, port), second = Open(group + scope, options, port);
  options.group = Address(other + scope);
  auto stranger = Open(other + scope, options, port);
  auto sender = Open("::");
  SendText(*sender, "to all", Address(group + scope, port), {}, interface);
  for (DatagramSocket* member : {first.get(), second.get()}) {
    auto came = ReceiveAll(*member);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0].text, "to all");
    EXPECT_TRUE(came[0].about.to.SameHost(Address(group + scope))) << came[0].about.to.ToString();
  }
  EXPECT_TRUE(ReceiveAll(*first, 100, 0).empty()) << "a second copy";
  EXPECT_TRUE(ReceiveAll(*stranger, 100, 0).empty());
}

INSTANTIATE_TEST_SUITE_P(Families, Groups,
                         testing::Values(std::pair<std::string, std::string>("239.4.4.4", "239.4.4.5"),
                                         std::pair<std::string, std::string>("ff02::4:4", "ff02::4:5")));

}  // namespace
}  // namespace weft::transport
