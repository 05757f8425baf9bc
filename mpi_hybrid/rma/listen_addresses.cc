#include "mpi_hybrid/rma/listen_addresses.h"

#include <algorithm>

namespace weft::mpi::rma {

using transport::SocketAddress;

std::vector<SocketAddress> ListenAddresses(const std::vector<std::string>& hosts,
                                           const std::vector<SocketAddress>& interfaces, bool one_host) {
  std::vector<SocketAddress> addresses;
  const auto add = [&addresses](const SocketAddress& address) {
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  };
  for (const std::string& host : hosts) {
    if (const auto address = SocketAddress::Parse(host, 0)) add(*address);
  }
  for (const SocketAddress& address : interfaces) {
    if (one_host || !address.is_loopback()) add(address);
  }
  return addresses;
}

}  // namespace weft::mpi::rma
