#include "transport/local_address.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>
#include <vector>

namespace weft::transport {
namespace {


SocketAddress Address(const char* host, uint16_t port = 0) { return SocketAddress::Parse(host, port).value(); }

TEST(SourceAddressTest, LoopbackIsReachedFromLoopback) {
  const auto v4 = SourceAddressFor(SocketAddress(), Address("127.0.0.1", 7174));
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->ToString(), "127.0.0.1:0");
  const auto v6 = SourceAddressFor(SocketAddress(), Address("::1", 7174));
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->ToString(), "[::1]:0");
}

TEST(SourceAddressTest, KeepsTheGivenHostAndPort) {
  const auto source = SourceAddressFor(Address("127.0.0.9", 4000), Address("127.0.0.1", 1));
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->ToString(), "127.0.0.9:4000");
}

TEST(SourceAddressTest, WildcardHostKeepsItsPort) {
  const auto source = SourceAddressFor(Address("0.0.0.0", 4000), Address("127.0.0.1", 1));
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->ToString(), "127.0.0.1:4000");
}

TEST(SourceAddressTest, FamiliesMustAgree) {
  EXPECT_EQ(SourceAddressFor(Address("::1"), Address("127.0.0.1", 1)).error(), EINVAL);
}

TEST(SourceAddressTest, SourceThatIsNotOursIsRefused) {
  EXPECT_EQ(SourceAddressFor(Address("192.0.2.1"), Address("127.0.0.1", 1)).error(), EADDRNOTAVAIL);
}

TEST(PortReservationTest, PortZeroIsChosen) {
  PortReservation port;
  ASSERT_EQ(port.Reserve(Address("127.0.0.1"), {}), 0);
  EXPECT_TRUE(port.held());
  EXPECT_NE(port.address().port(), 0);
}

TEST(PortReservationTest, AChosenPortIsFreeAsUdpsTooWhereThatIsAsked) {
  const auto udp_at = [](const SocketAddress& address) {
    const int fd = socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_GE(fd, 0);
    const bool bound = bind(fd, address.get(), address.length()) == 0;
    if (!bound) close(fd);
    return bound ? fd : -1;
  };
  // So many that without a look some of the ports would be theirs: of 28,232 that the kernel chooses from by default one in 140.
  std::vector<int> others;
  for (int i = 0; i < 200; ++i) others.push_back(udp_at(Address("0.0.0.0")));
  for (int i = 0; i < 2000; ++i) {
    PortReservation port;
    ASSERT_EQ(port.Reserve(Address("127.0.0.1"), {.udp_too = true}), 0);
    const int fd = udp_at(port.address());
    ASSERT_GE(fd, 0) << port.address().ToString();
    close(fd);
  }
  for (const int fd : others) close(fd);
}

TEST(PortReservationTest, SecondReservationOfAPortIsRefused) {
  PortReservation first, second, wildcard, dual, only_v6, elsewhere;
  ASSERT_EQ(first.Reserve(Address("127.0.0.1"), {}), 0);
  const uint16_t port = first.address().port();
  EXPECT_EQ(second.Reserve(Address("127.0.0.1", port), {}), EADDRINUSE);
  EXPECT_EQ(wildcard.Reserve(Address("0.0.0.0", port), {}), EADDRINUSE);
  EXPECT_EQ(dual.Reserve(Address("::", port), {}), EADDRINUSE);
  EXPECT_EQ(only_v6.Reserve(Address("::", port), {.only_v6 = true}), 0);
  EXPECT_EQ(elsewhere.Reserve(Address("127.0.0.2", port), {}), 0);
}

// The kernel lends out again a port whose socket is closed, as those are whose connection took another.
TEST(PortReservationTest, PortZeroIsAlwaysOneThatNobodyHereHolds) {
  std::vector<std::unique_ptr<PortReservation>> ports;
  std::set<uint16_t> seen;
  for (int i = 0; i < 3000; ++i) {
    ports.push_back(std::make_unique<PortReservation>());
    ASSERT_EQ(ports.back()->Reserve(Address("127.0.0.1"), {}), 0) << i;
    EXPECT_TRUE(seen.insert(ports.back()->address().port()).second);
    ports.back()->CloseSocket();
  }
}

TEST(PortReservationTest, ReusablePortsAreShared) {
  PortReservation first, second, third;
  ASSERT_EQ(first.Reserve(Address("127.0.0.1"), {.reuse_address = true}), 0);
  const SocketAddress taken = first.address();
  EXPECT_EQ(second.Reserve(taken, {.reuse_address = true}), 0);
  EXPECT_EQ(third.Reserve(taken, {}), EADDRINUSE);
}

TEST(PortReservationTest, ReleasedPortIsFree) {
  PortReservation first, second;
  ASSERT_EQ(first.Reserve(Address("127.0.0.1"), {}), 0);
  const SocketAddress taken = first.address();
  first.Release();
  EXPECT_FALSE(first.held());
  EXPECT_EQ(second.Reserve(taken, {}), 0);
}

TEST(PortReservationTest, ClosedSocketLeavesThePortToTheListenerButNotToOthersHere) {
  PortReservation first, second;
  ASSERT_EQ(first.Reserve(Address("127.0.0.1"), {}), 0);
  const SocketAddress taken = first.address();
  first.CloseSocket();
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(bind(listener, taken.get(), taken.length()), 0);
  EXPECT_EQ(second.Reserve(taken, {}), EADDRINUSE);
  close(listener);
}

TEST(PortReservationTest, PortOfAListenerIsRefused) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const SocketAddress any = Address("127.0.0.1");
  ASSERT_EQ(bind(listener, any.get(), any.length()), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&name), &length), 0);
  PortReservation port;
  EXPECT_EQ(port.Reserve(SocketAddress::From(reinterpret_cast<sockaddr*>(&name), length).value(), {}), EADDRINUSE);
  close(listener);
}

TEST(PortReservationTest, AddressThatIsNotOursIsRefused) {
  PortReservation port;
  EXPECT_EQ(port.Reserve(Address("192.0.2.1"), {}), EADDRNOTAVAIL);
  EXPECT_FALSE(port.held());
}

}  // namespace
}  // namespace weft::transport
