// The interfaces of the machine that runs it: expects only what every machine has.
#include "transport/interfaces.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <algorithm>
#include <fstream>

namespace weft::transport {
namespace {

TEST(InterfacesTest, LoopbackIsListedWithItsAddressAndMtu) {
  std::vector<NetworkInterface> all = ListInterfaces();
  auto lo = std::find_if(all.begin(), all.end(), [](const NetworkInterface& one) { return one.loopback; });
  if (lo == all.end()) GTEST_SKIP() << "the loopback interface has no address here";
  EXPECT_EQ(lo->name, "lo");
  EXPECT_EQ(lo->index, if_nametoindex("lo"));
  EXPECT_TRUE(lo->up);
  EXPECT_TRUE(lo->addresses.front().is_loopback());
  EXPECT_EQ(lo->addresses.front().port(), 0);
  uint32_t mtu = 0;
  if (std::ifstream("/sys/class/net/lo/mtu") >> mtu) {
    EXPECT_EQ(lo->mtu, mtu);
  }
  EXPECT_EQ(lo->mac, (std::array<uint8_t, 6>{}));
}

TEST(InterfacesTest, EachIsListedOnceWithAnAddressAndInOrder) {
  uint32_t before = 0;
  for (const NetworkInterface& one : ListInterfaces()) {
    EXPECT_GT(one.index, before) << one.name;
    before = one.index;
    EXPECT_FALSE(one.addresses.empty()) << one.name;
    EXPECT_GT(one.mtu, 0u) << one.name;
    EXPECT_EQ(one.name.find(':'), std::string::npos) << one.name;
    EXPECT_TRUE(one.up || !one.running) << one.name;
  }
}

TEST(InterfacesTest, LinkLocalAddressesCarryTheirInterface) {
  for (const NetworkInterface& one : ListInterfaces()) {
    for (const SocketAddress& address : one.addresses) {
      if (address.family() != AF_INET6) continue;
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
      if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
        EXPECT_EQ(v6->sin6_scope_id, one.index);
      }
    }
  }
}

TEST(InterfacesTest, EachAddressOfAnInterfaceIsListedBesides) {
  const std::vector<InterfaceAddress> all = ListAddresses();
  size_t count = 0;
  for (const NetworkInterface& one : ListInterfaces()) {
    for (const SocketAddress& address : one.addresses) {
      ++count;
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const InterfaceAddress& other) {
        return other.address == address && other.up == one.up && other.loopback == one.loopback &&
               other.label.starts_with(one.name);
      })) << address.ToString();
    }
  }
  EXPECT_EQ(all.size(), count);
}

}  // namespace
}  // namespace weft::transport
