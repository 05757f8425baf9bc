#include "mpi_hybrid/core/host_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace weft::mpi {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

socklen_t LengthOf(const sockaddr& address) { return address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

std::string Numeric(const sockaddr& address) {
  char text[NI_MAXHOST];
  if (getnameinfo(&address, LengthOf(address), text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

// Link-local addresses of IPv6 mean nothing on another host.
bool IsUsable(const sockaddr& address, int family) {
  if (address.sa_family != family) return false;
  return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Of the interface `name`, or of all that are up and not the loopback when it is empty: bridges without a member (a container engine's) have
// no carrier, and go last.
std::vector<std::string> OfInterfaces(const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<std::string> addresses;
  for (const unsigned running : {static_cast<unsigned>(IFF_RUNNING), 0u}) {
    for (const int family : {AF_INET, AF_INET6}) {
      for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || !IsUsable(*at->ifa_addr, family) || (at->ifa_flags & IFF_RUNNING) != running) continue;
        const bool wanted = name.empty() ? (at->ifa_flags & IFF_UP) && !(at->ifa_flags & IFF_LOOPBACK) : name == at->ifa_name;
        if (wanted) addresses.push_back(Numeric(*at->ifa_addr));
      }
    }
  }
  return addresses;
}

std::unique_ptr<addrinfo, void (*)(addrinfo*)> Resolve(const std::string& host, const char* service) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), service, &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

std::string OfName(const std::string& host) {
  const auto found = Resolve(host, nullptr);
  for (int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
      if (at->ai_family == family) return Numeric(*at->ai_addr);
    }
  }
  return "";
}

// The local address of a (datagram, silent) connection to `endpoint`, "HOST:PORT".
std::string Towards(const std::string& endpoint) {
  const size_t colon = endpoint.rfind(':');
  if (colon == endpoint.npos) return "";
  const auto found = Resolve(endpoint.substr(0, colon), endpoint.c_str() + colon + 1);
  if (!found) return "";
  const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  auto* address = reinterpret_cast<sockaddr*>(&local);
  const bool known = connect(fd, found->ai_addr, found->ai_addrlen) == 0 && getsockname(fd, address, &length) == 0;
  close(fd);
  return known ? Numeric(*address) : "";
}

}  // namespace

Error FindHostAddresses(bool one_host, std::vector<std::string>* addresses) {
  addresses->clear();
  const auto add = [&](const std::string& address) {
    if (!address.empty() && std::find(addresses->begin(), addresses->end(), address) == addresses->end()) addresses->push_back(address);
  };
  const char* setting = secure_getenv("WEFT_MPI_HOST");
  if (setting != nullptr && *setting != '\0') {
    const std::vector<std::string> of_interface = OfInterfaces(setting);
    add(of_interface.empty() ? OfName(setting) : of_interface.front());
    if (!addresses->empty()) return {};
    return Error(MPI_ERR_OTHER,
                 "WEFT_MPI_HOST=" + std::string(setting) + " is neither an address, nor a host, nor an interface of this host");
  }
  if (!one_host) {
    const char* port = secure_getenv("PMI_PORT");
    const std::string towards = port != nullptr ? Towards(port) : "";
    // A launcher on this very host is reached by the loopback, which is no use to ranks elsewhere.
    if (towards != "::1" && towards.compare(0, 4, "127.") != 0) add(towards);
    for (const std::string& address : OfInterfaces("")) add(address);
  }
  if (addresses->empty()) add(kLoopback);
  return {};
}

}  // namespace weft::mpi
