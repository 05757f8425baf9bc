#include "mpi_hybrid/p2p/tcp/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/high_descriptor.h"

namespace weft::mpi {
namespace {

constexpr int kBacklog = 4096;  // the kernel cuts it to net.core.somaxconn

// A host that is silent is gone after 30 + 6 * 10 s, where nothing is under way; else Connection::LookForPeer finds out. No TCP_USER_TIMEOUT: it
// would end the connection to a rank that is alive and computes for longer than that with its buffer full.
void Configure(int fd) {
  const int on = 1, idle_seconds = 30, interval_seconds = 10, probes = 6;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

}  // namespace

Socket Socket::Listen(const transport::SocketAddress& address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  // Where the system's default is otherwise (net.ipv6.bindv6only), IPv4 comes to the wildcard of IPv6 all the same.
  const int off = 0;
  if (address.family() == AF_INET6 && address.is_wildcard())
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (bind(socket.get(), address.get(), address.length()) != 0 || listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    socket.Close();
    errno = error;
  }
  return socket;
}

Socket Socket::ListenEverywhere() {
  Socket socket = Listen(*transport::SocketAddress::Parse("::", 0));
  return socket ? std::move(socket) : Listen(*transport::SocketAddress::Parse("0.0.0.0", 0));
}

Socket Socket::StartConnect(const transport::SocketAddress& address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  Configure(socket.get());
  if (connect(socket.get(), address.get(), address.length()) != 0 && errno != EINPROGRESS && errno != EINTR) {
    const int error = errno;
    socket.Close();
    errno = error;
  }
  return socket;
}

Socket Socket::Accept() const {
  Socket socket(AcceptOnListener(get()));
  if (socket) Configure(socket.get());
  return socket;
}

int Socket::ConnectError() const {
  int error = 0;
  socklen_t length = sizeof(error);
  return getsockopt(get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

bool Socket::IsConnected() const { return transport::SocketAddress::Peer(get()).family() != AF_UNSPEC; }

transport::SocketAddress Socket::LocalAddress() const { return transport::SocketAddress::Local(get()); }

std::string Socket::PeerName() const {
  const transport::SocketAddress peer = transport::SocketAddress::Peer(get());
  return peer.family() != AF_UNSPEC ? peer.ToString() : "an unknown address";
}

void Socket::SetLowWater(size_t bytes) const {
  const int value = static_cast<int>(bytes);
  setsockopt(get(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
}

void Socket::ShutdownWrite() const { shutdown(get(), SHUT_WR); }
void Socket::Shutdown() const { shutdown(get(), SHUT_RDWR); }

ssize_t Socket::Read(std::span<const iovec> into) const {
  ssize_t bytes;
  do {
    bytes = into.size() == 1 ? recv(get(), into[0].iov_base, into[0].iov_len, MSG_DONTWAIT)
                             : readv(get(), into.data(), static_cast<int>(into.size()));
  } while (bytes < 0 && errno == EINTR);
  return bytes < 0 ? -errno : bytes;
}

ssize_t Socket::Write(std::span<const iovec> from) const {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from.data());
  message.msg_iovlen = from.size();
  ssize_t bytes;
  do {
    bytes = sendmsg(get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (bytes < 0 && errno == EINTR);
  return bytes < 0 ? -errno : bytes;
}

}  // namespace weft::mpi
