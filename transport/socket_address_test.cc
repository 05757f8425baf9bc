#include "transport/socket_address.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

TEST(SocketAddressTest, ParsesAndPrintsBothFamilies) {
  auto v4 = SocketAddress::Parse("192.0.2.7", 80);
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->family(), AF_INET);
  EXPECT_EQ(v4->port(), 80);
  EXPECT_EQ(v4->length(), sizeof(sockaddr_in));
  EXPECT_EQ(v4->ToString(), "192.0.2.7:80");

  auto v6 = SocketAddress::Parse("2001:db8::1", 443);
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->family(), AF_INET6);
  EXPECT_EQ(v6->port(), 443);
  EXPECT_EQ(v6->length(), sizeof(sockaddr_in6));
  EXPECT_EQ(v6->ToString(), "[2001:db8::1]:443");
}

TEST(SocketAddressTest, LinkLocalKeepsItsScope) {
  auto by_name = SocketAddress::Parse("fe80::1%lo", 1);
  ASSERT_TRUE(by_name);
  EXPECT_EQ(by_name->ToString(), "[fe80::1%lo]:1");
  auto by_number = SocketAddress::Parse("fe80::1%4000000", 1);
  ASSERT_TRUE(by_number);
  EXPECT_EQ(by_number->ToString(), "[fe80::1%4000000]:1");
  EXPECT_FALSE(*by_name == *by_number);
  EXPECT_FALSE(by_name->SameHost(*by_number));
  EXPECT_TRUE(by_name->SameHost(*SocketAddress::Parse("fe80::1", 2)));
}

TEST(SocketAddressTest, RefusesWhatIsNotNumeric) {
  for (const char* text : {"", "localhost", "1.2.3", "1.2.3.4.5", "::1%", "fe80::1%no-such-interface", "[::1]"}) {
    EXPECT_FALSE(SocketAddress::Parse(text, 1)) << text;
  }
}

TEST(SocketAddressTest, RefusesShortOrForeignSockaddr) {
  SocketAddress v6 = *SocketAddress::Parse("::1", 5);
  for (socklen_t length = 0; length < sizeof(sockaddr_in6); ++length) {
    EXPECT_FALSE(SocketAddress::From(v6.get(), length)) << length;
  }
  auto copy = SocketAddress::From(v6.get(), sizeof(sockaddr_storage));
  ASSERT_TRUE(copy);
  EXPECT_TRUE(*copy == v6);
  sockaddr_storage foreign{};
  foreign.ss_family = AF_UNIX;
  EXPECT_FALSE(SocketAddress::From(reinterpret_cast<sockaddr*>(&foreign), sizeof foreign));
  EXPECT_FALSE(SocketAddress::From(nullptr, 0));
}

TEST(SocketAddressTest, KnowsWildcardAndLoopback) {
  EXPECT_TRUE(SocketAddress::Parse("0.0.0.0", 1)->is_wildcard());
  EXPECT_TRUE(SocketAddress::Parse("::", 1)->is_wildcard());
  EXPECT_TRUE(SocketAddress::Parse("::ffff:0.0.0.0", 1)->is_wildcard());
  EXPECT_FALSE(SocketAddress::Parse("127.0.0.1", 1)->is_wildcard());
  EXPECT_TRUE(SocketAddress::Parse("127.0.0.1", 1)->is_loopback());
  EXPECT_TRUE(SocketAddress::Parse("127.9.9.9", 1)->is_loopback());
  EXPECT_TRUE(SocketAddress::Parse("::1", 1)->is_loopback());
  EXPECT_TRUE(SocketAddress::Parse("::ffff:127.0.0.1", 1)->is_loopback());
  EXPECT_FALSE(SocketAddress::Parse("192.0.2.1", 1)->is_loopback());
  EXPECT_FALSE(SocketAddress().is_wildcard());
  EXPECT_FALSE(SocketAddress().is_loopback());
}

TEST(SocketAddressTest, SameHostIgnoresPortAndMapping) {
  SocketAddress v4 = *SocketAddress::Parse("192.0.2.1", 1);
  EXPECT_TRUE(v4.SameHost(*SocketAddress::Parse("::ffff:192.0.2.1", 9)));
  EXPECT_FALSE(v4.SameHost(*SocketAddress::Parse("192.0.2.2", 1)));
  EXPECT_FALSE(v4.SameHost(SocketAddress()));
  EXPECT_FALSE(v4 == *SocketAddress::Parse("192.0.2.1", 2));
  EXPECT_FALSE(v4 == *SocketAddress::Parse("::ffff:192.0.2.1", 1));
}

TEST(SocketAddressTest, EmptyAddressHasNoFamily) {
  SocketAddress none;
  EXPECT_EQ(none.family(), AF_UNSPEC);
  EXPECT_EQ(none.length(), 0u);
  EXPECT_EQ(none.port(), 0);
  none.set_port(7);
  EXPECT_EQ(none.port(), 0);
  EXPECT_TRUE(none == SocketAddress());
  EXPECT_EQ(none.ToString(), "(no address)");
}

}  // namespace
}  // namespace weft::transport
