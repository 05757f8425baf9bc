#include "transport/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstring>

namespace weft::transport {
namespace {

// The address of `host` as 16 bytes, IPv4 as IPv4-mapped. nullopt: no family.
std::optional<in6_addr> AsV6(const sockaddr* address) {
  if (address->sa_family == AF_INET6) return reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (address->sa_family != AF_INET) return std::nullopt;
  in6_addr mapped{};
  mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
  std::memcpy(&mapped.s6_addr[12], &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  return mapped;
}

uint32_t ScopeOf(const sockaddr* address) {
  return address->sa_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(address)->sin6_scope_id : 0;
}

// An interface's name or number; 0 when there is none such.
uint32_t ParseScope(const std::string& scope) {
  uint32_t number = 0;
  auto [end, error] = std::from_chars(scope.data(), scope.data() + scope.size(), number);
  if (error == std::errc() && end == scope.data() + scope.size()) return number;
  return if_nametoindex(scope.c_str());
}

}  // namespace

std::optional<SocketAddress> SocketAddress::From(const sockaddr* address, socklen_t length) {
  if (address == nullptr || length < sizeof(sa_family_t)) return std::nullopt;
  socklen_t needed = address->sa_family == AF_INET    ? sizeof(sockaddr_in)
                     : address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                      : 0;
  if (needed == 0 || length < needed) return std::nullopt;
  SocketAddress result;
  std::memcpy(&result.storage_, address, needed);
  return result;
}

std::optional<SocketAddress> SocketAddress::Parse(std::string_view host, uint16_t port) {
  SocketAddress result;
  std::string text(host);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&result.storage_);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return result;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.storage_);
  if (size_t percent = text.find('%'); percent != text.npos) {
    v6->sin6_scope_id = ParseScope(text.substr(percent + 1));
    if (v6->sin6_scope_id == 0) return std::nullopt;
    text.resize(percent);
  }
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) != 1) return std::nullopt;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  return result;
}

socklen_t SocketAddress::length() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : family() == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
}

bool SocketAddress::is_wildcard() const {
  std::optional<in6_addr> address = AsV6(get());
  if (!address) return false;
  if (!IN6_IS_ADDR_V4MAPPED(&*address)) return IN6_IS_ADDR_UNSPECIFIED(&*address);
  return address->s6_addr[12] == 0 && address->s6_addr[13] == 0 && address->s6_addr[14] == 0 &&
         address->s6_addr[15] == 0;
}

bool SocketAddress::is_loopback() const {
  std::optional<in6_addr> address = AsV6(get());
  if (!address) return false;
  return IN6_IS_ADDR_V4MAPPED(&*address) ? address->s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&*address);
}

bool SocketAddress::SameHost(const SocketAddress& other) const {
  std::optional<in6_addr> mine = AsV6(get()), theirs = AsV6(other.get());
  if (!mine || !theirs || std::memcmp(&*mine, &*theirs, sizeof *mine) != 0) return false;
  // A link-local address says nothing without its link; where one side does not tell, give it the benefit of the doubt.
  uint32_t my_scope = ScopeOf(get()), their_scope = ScopeOf(other.get());
  return my_scope == their_scope || my_scope == 0 || their_scope == 0;
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (family() != other.family() || port() != other.port()) return false;
  if (length() == 0) return true;
  std::optional<in6_addr> mine = AsV6(get()), theirs = AsV6(other.get());
  return std::memcmp(&*mine, &*theirs, sizeof *mine) == 0 && ScopeOf(get()) == ScopeOf(other.get());
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    return inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text, sizeof text);
  }
  if (family() != AF_INET6) return "";
  std::string host =
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text, sizeof text);
  if (uint32_t scope = ScopeOf(get()); scope != 0) {
    char name[IF_NAMESIZE];
    host += '%';
    host += if_indextoname(scope, name) != nullptr ? std::string(name) : std::to_string(scope);
  }
  return host;
}

std::string SocketAddress::ToString() const {
  if (length() == 0) return "(no address)";
  return (family() == AF_INET6 ? "[" + host() + "]" : host()) + ":" + std::to_string(port());
}

namespace {

SocketAddress Ask(int fd, int (*query)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (query(fd, address, &length) != 0) return {};
  return SocketAddress::From(address, length).value_or(SocketAddress());
}

}  // namespace

SocketAddress SocketAddress::Local(int fd) { return Ask(fd, getsockname); }

SocketAddress SocketAddress::Peer(int fd) { return Ask(fd, getpeername); }

}  // namespace weft::transport
