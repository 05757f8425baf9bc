#include "pmi/launch/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "transport/interfaces.h"
#include "transport/socket_address.h"

namespace weft::pmi {
namespace {

constexpr std::chrono::milliseconds kDialLimit{5000};  // for one address to answer

}  // namespace

void ConfigureTcp(int fd) {
  const int on = 1;
  const int idle_seconds = 10, interval_seconds = 5, probes = 4;
  static_assert(10 + 5 * 4 == std::chrono::seconds(kSilence).count());
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

int Dial(const std::string& address, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool connected = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!connected && fd >= 0 && errno == EINPROGRESS) {
    pollfd entry{fd, POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof(error);
    connected = poll(&entry, 1, static_cast<int>(kDialLimit.count())) == 1 &&
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  }
  if (connected) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

std::vector<std::string> AddressesFor(const std::string& first, const std::string& interface) {
  std::vector<std::string> addresses;
  const auto add = [&](const std::string& address) {
    if (!address.empty() && std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(address);
  };
  if (interface.empty()) add(first);
  const auto own = transport::ListAddresses();
  for (const bool loopback : {false, true}) {
    for (const auto& [label, up, running, is_loopback, address] : own) {
      if (!up || is_loopback != loopback || (!interface.empty() && interface != label)) continue;
      const std::string host = address.host();
      if (host.find('%') == std::string::npos) add(host);  // link-local ones mean nothing elsewhere
    }
  }
  return addresses;
}

namespace {

// -1 and errno.
int BindIpv4(int port, in_addr_t address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(address);
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) return fd;
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

// A socket bound to the port of all addresses, of both families where there is IPv6. -1 and errno.
int BindAnywhere(int port) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  const int off = 0;
  if (fd >= 0) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&any6), sizeof(any6)) == 0) return fd;
  if (fd >= 0) close(fd);
  return BindIpv4(port, INADDR_ANY);
}

}  // namespace

int Listen(int* port, PortRange range, Reach reach) {
  int fd = -1;
  for (int wanted = range.first; fd < 0 && wanted <= range.last; ++wanted) {
    fd = reach == Reach::kThisHost ? BindIpv4(wanted, INADDR_LOOPBACK) : BindAnywhere(wanted);
    // Two that have bound a port both may find out only now that it is the other's.
    if (fd >= 0 && listen(fd, 128) != 0) {
      const int error = errno;
      close(std::exchange(fd, -1));
      errno = error;
    }
  }
  if (fd < 0) return -1;
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  // The port stands at the same place in both families.
  *port = ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return fd;
}

std::string PlainHost(const transport::SocketAddress& address) {
  const std::string host = address.host();
  static constexpr std::string_view kMapped = "::ffff:";
  const bool mapped = host.starts_with(kMapped) && host.find('.') != host.npos;
  return mapped ? host.substr(kMapped.size()) : host;
}

std::string OwnAddress(int fd) { return PlainHost(transport::SocketAddress::Local(fd)); }

}  // namespace weft::pmi
