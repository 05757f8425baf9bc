#include "mpi_hybrid/rma/listen_addresses.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace weft::mpi::rma {
namespace {

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

}  // namespace

std::vector<sockaddr_storage> ListenAddresses(const std::vector<std::string>& hosts,
                                              const std::vector<sockaddr_storage>& interfaces, bool one_host) {
  std::vector<sockaddr_storage> addresses;
  const auto add = [&addresses](const sockaddr_storage& address) {
    const bool known = std::any_of(addresses.begin(), addresses.end(), [&address](const sockaddr_storage& other) {
      return std::memcmp(&other, &address, sizeof address) == 0;
    });
    if (!known) addresses.push_back(address);
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  for (const std::string& host : hosts) {
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) continue;
    sockaddr_storage address{};
    std::memcpy(&address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    add(address);
  }
  for (const sockaddr_storage& address : interfaces) {
    if (one_host || !IsLoopback(address)) add(address);
  }
  return addresses;
}

}  // namespace weft::mpi::rma
