#include "transport/sctp/arguments.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace weft::transport::sctp {
namespace {

constexpr size_t kMostAddresses = 16;
constexpr Milliseconds kLongest = std::chrono::hours(1);

bool Between(Milliseconds time, Milliseconds least, Milliseconds most) { return least <= time && time <= most; }

bool IsLinkLocal(const SocketAddress& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

}  // namespace

int Check(const Settings& s) {
  const bool times = Between(s.heartbeat_interval, Milliseconds(0), kLongest) &&
                     Between(s.rto_min, Milliseconds(10), kLongest) && Between(s.rto_initial, s.rto_min, s.rto_max) &&
                     Between(s.rto_max, s.rto_min, kLongest) &&
                     Between(s.sack_delay, Milliseconds(0), Milliseconds(500));
  const bool numbers = s.streams_in > 0 && s.streams_out > 0 && s.path_max_retransmissions > 0 &&
                       s.association_max_retransmissions > 0 && s.send_buffer >= 4096 && s.receive_buffer >= 4096 &&
                       s.send_buffer <= 1u << 30 && s.receive_buffer <= 1u << 30 &&
                       (s.path_mtu == 0 || (s.path_mtu >= 576 && s.path_mtu <= 65535));
  return times && numbers ? 0 : EINVAL;
}

int CheckAddresses(const std::vector<SocketAddress>& addresses) {
  if (addresses.size() > kMostAddresses) return EINVAL;
  for (const SocketAddress& address : addresses) {
    if (address.family() != AF_INET && address.family() != AF_INET6) return EAFNOSUPPORT;
    if (IsLinkLocal(address)) return EADDRNOTAVAIL;
  }
  return 0;
}

int Check(const Peer& peer) {
  if (peer.addresses.empty()) return EINVAL;
  const uint16_t port = peer.addresses[0].port();
  for (const SocketAddress& address : peer.addresses) {
    if (address.port() != port || port == 0) return EINVAL;
  }
  return CheckAddresses(peer.addresses);
}

int FamilyFor(const std::vector<SocketAddress>& some, const std::vector<SocketAddress>& others) {
  const auto is_v6 = [](const SocketAddress& address) { return address.family() == AF_INET6; };
  return std::any_of(some.begin(), some.end(), is_v6) || std::any_of(others.begin(), others.end(), is_v6) ? AF_INET6
                                                                                                          : AF_INET;
}

std::vector<uint8_t> Packed(const std::vector<SocketAddress>& addresses) {
  std::vector<uint8_t> packed;
  for (const SocketAddress& address : addresses) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(address.get());
    packed.insert(packed.end(), bytes, bytes + address.length());
  }
  return packed;
}

std::vector<SocketAddress> Unpacked(const void* addresses, size_t count) {
  std::vector<SocketAddress> list;
  const auto* at = static_cast<const char*>(addresses);
  for (size_t i = 0; i < count; ++i) {
    const auto* one = reinterpret_cast<const sockaddr*>(at);
    const socklen_t length = one->sa_family == AF_INET    ? sizeof(sockaddr_in)
                             : one->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                          : 0;
    if (length == 0) break;
    if (auto address = SocketAddress::From(one, length)) list.push_back(*address);
    at += length;
  }
  return list;
}

}  // namespace weft::transport::sctp
