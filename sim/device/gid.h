#ifndef SIM_DEVICE_GID_H_
#define SIM_DEVICE_GID_H_

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>

#include "transport/socket_address.h"

namespace weft::sim {

// Whether the GID names a multicast group: an IPv6 group, or an IPv4 group mapped into IPv6 like RoCE v2 does
// (::ffff:224.0.0.1).
inline bool IsGroup(const ibv_gid& gid) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return gid.raw[0] == 0xff || (std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0 && (gid.raw[12] & 0xf0) == 0xe0);
}

// The IP address of the GID, port 0; no family: GID 0. ff0e::ffff:224.0.0.1, RoCE v1's form of an IPv4 group, is IPv4
// too. `interface`: index, used as the scope of link-local addresses and groups.
inline transport::SocketAddress AddressOf(const ibv_gid& gid, uint32_t interface) {
  static constexpr uint8_t kMapped[10] = {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  static constexpr ibv_gid kNone = {};
  if (std::memcmp(gid.raw, kNone.raw, sizeof gid.raw) == 0) return {};
  const bool unicast = gid.raw[0] == 0 && gid.raw[1] == 0;
  const bool group = gid.raw[0] == 0xff && gid.raw[1] == 0x0e && (gid.raw[12] & 0xf0) == 0xe0;
  if ((unicast || group) && std::memcmp(gid.raw + 2, kMapped, sizeof kMapped) == 0) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    std::memcpy(&in.sin_addr, gid.raw + 12, 4);
    return transport::SocketAddress::From(reinterpret_cast<const sockaddr*>(&in), sizeof in).value();
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  std::memcpy(&in6.sin6_addr, gid.raw, 16);
  const bool needs_scope = IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) || IN6_IS_ADDR_MULTICAST(&in6.sin6_addr);
  if (needs_scope) in6.sin6_scope_id = interface;
  return transport::SocketAddress::From(reinterpret_cast<const sockaddr*>(&in6), sizeof in6).value();
}

}  // namespace weft::sim

#endif  // SIM_DEVICE_GID_H_
