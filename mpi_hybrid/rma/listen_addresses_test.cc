#include "mpi_hybrid/rma/listen_addresses.h"

#include <gtest/gtest.h>

namespace weft::mpi::rma {
namespace {

using Names = std::vector<std::string>;

std::vector<transport::SocketAddress> Interfaces(const Names& names) {
  std::vector<transport::SocketAddress> addresses;
  for (const std::string& name : names) addresses.push_back(transport::SocketAddress::Parse(name, 0).value());
  return addresses;
}

Names NamesOf(const std::vector<transport::SocketAddress>& addresses) {
  Names names;
  for (const transport::SocketAddress& address : addresses) names.push_back(address.host());
  return names;
}

TEST(ListenAddressesTest, AllThatTheJobKnowsComeInItsOrderAndThenTheInterfaces) {
  const auto addresses = ListenAddresses({"192.0.2.2", "192.0.2.1", "fd00::1"},
                                         Interfaces({"192.0.2.1", "192.0.2.3", "192.0.2.2"}), false);
  EXPECT_EQ(NamesOf(addresses), Names({"192.0.2.2", "192.0.2.1", "fd00::1", "192.0.2.3"}));
}

TEST(ListenAddressesTest, AJobOnSeveralHostsDoesNotListenOnTheLoopbackThatItDoesNotKnow) {
  const auto interfaces = Interfaces({"127.0.0.1", "192.0.2.3"});
  EXPECT_EQ(NamesOf(ListenAddresses({"192.0.2.1"}, interfaces, false)), Names({"192.0.2.1", "192.0.2.3"}));
  EXPECT_EQ(NamesOf(ListenAddresses({"127.0.0.1"}, interfaces, false)), Names({"127.0.0.1", "192.0.2.3"}));
}

TEST(ListenAddressesTest, AJobOnOneHostMayListenOnTheLoopback) {
  EXPECT_EQ(NamesOf(ListenAddresses({"192.0.2.1"}, Interfaces({"127.0.0.1"}), true)),
            Names({"192.0.2.1", "127.0.0.1"}));
}

}  // namespace
}  // namespace weft::mpi::rma
