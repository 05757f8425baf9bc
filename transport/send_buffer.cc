#include "transport/send_buffer.h"

#include <sys/socket.h>

#include "transport/socket_address.h"

namespace weft::transport {
namespace {

constexpr int kBytes = 256 * 1024;  // the kernel doubles it, within net.core.wmem_max

}  // namespace

void BoundSendBufferOnOneHost(int fd) {
  const SocketAddress peer = SocketAddress::Peer(fd);
  if (peer.family() == AF_UNSPEC) return;  // not connected
  if (!peer.is_loopback() && !peer.SameHost(SocketAddress::Local(fd))) return;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof kBytes);
}

}  // namespace weft::transport
