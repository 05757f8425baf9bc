#ifndef TRANSPORT_SOCKET_ADDRESS_H_
#define TRANSPORT_SOCKET_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::transport {

// An IPv4 or IPv6 address with a port.
class SocketAddress {
 public:
  SocketAddress() = default;  // no family
  // nullopt: not AF_INET or AF_INET6, or `length` is too short for the family.
  static std::optional<SocketAddress> From(const sockaddr* address, socklen_t length);
  // "127.0.0.1", "::1", "fe80::1%eth0"; numeric only.
  static std::optional<SocketAddress> Parse(std::string_view host, uint16_t port);
  // The address of a socket, or of its peer; no family: it has none, or is no IP socket.
  static SocketAddress Local(int fd);
  static SocketAddress Peer(int fd);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const;
  int family() const { return storage_.ss_family; }
  uint16_t port() const;  // host byte order
  void set_port(uint16_t port);
  bool is_wildcard() const;
  bool is_loopback() const;
  bool SameHost(const SocketAddress& other) const;  // ignores ports; IPv4-mapped IPv6 equals its IPv4
  bool operator==(const SocketAddress& other) const;
  std::string host() const;      // 127.0.0.1, fe80::1%eth0; Parse accepts it
  std::string ToString() const;  // 127.0.0.1:80, [::1]:80

 private:
  sockaddr_storage storage_{};
};

}  // namespace weft::transport

#endif  // TRANSPORT_SOCKET_ADDRESS_H_
