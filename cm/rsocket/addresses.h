#ifndef CM_RSOCKET_ADDRESSES_H_
#define CM_RSOCKET_ADDRESSES_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>

// Functions on socket addresses (AF_INET or AF_INET6) for datagram rsockets.
namespace weft::rsocket {

inline const sockaddr_in& In4(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr_in&>(address); }
inline sockaddr_in& In4(sockaddr_storage& address) { return reinterpret_cast<sockaddr_in&>(address); }
inline const sockaddr_in6& In6(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr_in6&>(address); }
inline sockaddr_in6& In6(sockaddr_storage& address) { return reinterpret_cast<sockaddr_in6&>(address); }
inline const sockaddr* Raw(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr*>(&address); }
inline sockaddr* Raw(sockaddr_storage& address) { return reinterpret_cast<sockaddr*>(&address); }

inline socklen_t LengthOf(int family) { return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

// Turns an IPv4-mapped address, ::ffff:a.b.c.d (ipv6(7)), into its IPv4 address.
inline sockaddr_storage Unmapped(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&In6(address).sin6_addr)) return address;
  sockaddr_storage plain{};
  plain.ss_family = AF_INET;
  In4(plain).sin_port = In6(address).sin6_port;
  std::memcpy(&In4(plain).sin_addr, In6(address).sin6_addr.s6_addr + 12, 4);
  return plain;
}
inline sockaddr_storage Mapped(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET) return address;
  sockaddr_storage mapped{};
  mapped.ss_family = AF_INET6;
  In6(mapped).sin6_port = In4(address).sin_port;
  In6(mapped).sin6_addr.s6_addr[10] = In6(mapped).sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(In6(mapped).sin6_addr.s6_addr + 12, &In4(address).sin_addr, 4);
  return mapped;
}

inline uint16_t PortOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? In4(address).sin_port : In6(address).sin6_port;
}
inline void SetPort(sockaddr_storage& address, uint16_t port) {
  (address.ss_family == AF_INET ? In4(address).sin_port : In6(address).sin6_port) = port;
}
inline bool IsWildcard(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return In4(address).sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&In6(address).sin6_addr);
}
// A multicast group or a broadcast address.
inline bool IsGroup(const sockaddr_storage& address) {
  const sockaddr_storage plain = Unmapped(address);
  if (plain.ss_family == AF_INET6) return IN6_IS_ADDR_MULTICAST(&In6(plain).sin6_addr);
  const uint32_t host = ntohl(In4(plain).sin_addr.s_addr);
  return IN_MULTICAST(host) || host == INADDR_BROADCAST;
}

// A key that is equal for addresses with the same meaning.
inline std::string KeyOf(const sockaddr_storage& address) {
  const sockaddr_storage plain = Unmapped(address);
  const uint16_t port = PortOf(plain);
  std::string key(reinterpret_cast<const char*>(&port), sizeof port);
  if (plain.ss_family == AF_INET) return key.append(reinterpret_cast<const char*>(&In4(plain).sin_addr), sizeof(in_addr));
  return key.append(reinterpret_cast<const char*>(&In6(plain).sin6_addr), sizeof(in6_addr));
}

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_ADDRESSES_H_
