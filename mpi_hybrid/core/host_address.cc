#include "mpi_hybrid/core/host_address.h"

#include <mpi.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/host_port.h"
#include "transport/interfaces.h"
#include "transport/socket_address.h"

namespace weft::mpi {
namespace {

using transport::SocketAddress;

constexpr char kLoopback[] = "127.0.0.1";

// Link-local addresses of IPv6 mean nothing on another host.
bool IsUsable(const SocketAddress& address, int family) {
  if (address.family() != family) return false;
  return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

// Of the interface `name`, or of all that are up and not the loopback when it is empty: bridges without a member (a
// container engine's) have no carrier, and go last.
std::vector<std::string> OfInterfaces(const std::string& name) {
  const auto all = transport::ListAddresses();
  std::vector<std::string> addresses;
  for (const bool running : {true, false}) {
    for (const int family : {AF_INET, AF_INET6}) {
      for (const transport::InterfaceAddress& one : all) {
        if (!IsUsable(one.address, family) || one.running != running) continue;
        const bool wanted = name.empty() ? one.up && !one.loopback : name == one.label;
        if (wanted) addresses.push_back(one.address.host());
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
      if (at->ai_family == family) return SocketAddress::From(at->ai_addr, at->ai_addrlen)->host();
    }
  }
  return "";
}

// The local address of a (datagram, silent) connection to `endpoint`, "HOST:PORT".
std::string Towards(const std::string& endpoint) {
  const auto parsed = ParseHostPort(endpoint);
  if (!parsed) return "";
  const auto found = Resolve(parsed->host, std::to_string(parsed->port).c_str());
  if (!found) return "";
  const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  const std::string local = connect(fd, found->ai_addr, found->ai_addrlen) == 0 ? SocketAddress::Local(fd).host() : "";
  close(fd);
  return local;
}

}  // namespace

Error FindHostAddresses(bool one_host, std::vector<std::string>* addresses) {
  addresses->clear();
  const auto add = [&](const std::string& address) {
    if (!address.empty() && std::find(addresses->begin(), addresses->end(), address) == addresses->end())
      addresses->push_back(address);
  };
  const char* setting = secure_getenv("WEFT_MPI_HOST");
  if (setting != nullptr && *setting != '\0') {
    const std::vector<std::string> of_interface = OfInterfaces(setting);
    add(of_interface.empty() ? OfName(setting) : of_interface.front());
    if (!addresses->empty()) return {};
    return Error(MPI_ERR_OTHER, "WEFT_MPI_HOST=" + std::string(setting) +
                                    " is neither an address, nor a host, nor an interface of this host");
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
