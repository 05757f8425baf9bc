#include "mpi_hybrid/rma/listen_addresses.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

namespace weft::mpi::rma {
namespace {

using Names = std::vector<std::string>;

std::vector<sockaddr_storage> Interfaces(const Names& names) {
  std::vector<sockaddr_storage> addresses;
  for (const std::string& name : names) {
    auto& address = reinterpret_cast<sockaddr_in&>(addresses.emplace_back());
    address.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, name.c_str(), &address.sin_addr), 1);
  }
  return addresses;
}

Names NamesOf(const std::vector<sockaddr_storage>& addresses) {
  Names names;
  for (const sockaddr_storage& address : addresses) {
    char name[NI_MAXHOST];
    EXPECT_EQ(getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address, name, sizeof name, nullptr, 0,
                          NI_NUMERICHOST),
              0);
    names.emplace_back(name);
  }
  return names;
}

TEST(ListenAddressesTest, AllThatTheJobKnowsComeInItsOrderAndThenTheInterfaces) {
  const auto addresses =
      ListenAddresses({"192.0.2.2", "192.0.2.1", "fd00::1"}, Interfaces({"192.0.2.1", "192.0.2.3", "192.0.2.2"}), false);
  EXPECT_EQ(NamesOf(addresses), Names({"192.0.2.2", "192.0.2.1", "fd00::1", "192.0.2.3"}));
}

TEST(ListenAddressesTest, AJobOnSeveralHostsDoesNotListenOnTheLoopbackThatItDoesNotKnow) {
  const auto interfaces = Interfaces({"127.0.0.1", "192.0.2.3"});
  EXPECT_EQ(NamesOf(ListenAddresses({"192.0.2.1"}, interfaces, false)), Names({"192.0.2.1", "192.0.2.3"}));
  EXPECT_EQ(NamesOf(ListenAddresses({"127.0.0.1"}, interfaces, false)), Names({"127.0.0.1", "192.0.2.3"}));
}

TEST(ListenAddressesTest, AJobOnOneHostMayListenOnTheLoopback) {
  EXPECT_EQ(NamesOf(ListenAddresses({"192.0.2.1"}, Interfaces({"127.0.0.1"}), true)), Names({"192.0.2.1", "127.0.0.1"}));
}

}  // namespace
}  // namespace weft::mpi::rma
