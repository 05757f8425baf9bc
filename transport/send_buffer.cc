#include "transport/send_buffer.h"

#include <sys/socket.h>

#include "transport/socket_address.h"

namespace weft::transport {
namespace {

constexpr int kBytes = 256 * 1024;  // the kernel doubles it, within net.core.wmem_max

SocketAddress AddressOf(int fd, int (*query)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (query(fd, address, &length) != 0) return {};
  return SocketAddress::From(address, length).value_or(SocketAddress());
}

}  // namespace

void BoundSendBufferOnOneHost(int fd) {
  const SocketAddress peer = AddressOf(fd, getpeername);
  if (peer.family() == AF_UNSPEC) return;  // not connected
  if (!peer.is_loopback() && !peer.SameHost(AddressOf(fd, getsockname))) return;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof kBytes);
}

}  // namespace weft::transport
