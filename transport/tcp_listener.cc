#include "transport/tcp_listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "transport/tcp_stream.h"

namespace weft::transport {
namespace {

// accept(2): errors of the connection that is being accepted, not of the listener.
bool IsErrorOfTheConnection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EOPNOTSUPP:
    case EPERM:  // a firewall rule
      return true;
    default:
      return false;
  }
}

int Prepare(int fd, const SocketAddress& local, int backlog, bool only_v6, bool reuse_address) {
  int v6_only = only_v6, reuse = reuse_address;
  if (local.family() == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) != 0)
    return errno;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0) return errno;
  if (bind(fd, local.get(), local.length()) != 0) return errno;
  if (listen(fd, backlog) != 0) return errno;
  return 0;
}

}  // namespace

Result<std::unique_ptr<Listener>, int> TcpListener::Open(const SocketAddress& local, int backlog, bool only_v6,
                                                         bool reuse_address) {
  int fd = LeaveRoomForSelect(socket(local.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (fd < 0) return errno;
  std::unique_ptr<Listener> listener(new TcpListener(fd));
  if (int error = Prepare(fd, local, backlog, only_v6, reuse_address); error != 0) return error;
  return listener;
}

TcpListener::~TcpListener() { close(fd_); }

Result<std::unique_ptr<ByteStream>, int> TcpListener::Accept() {
  // Bounded, so that a peer that opens and resets at full speed cannot hold the caller.
  for (int attempt = 0; attempt < 64; ++attempt) {
    const int fd = AcceptOnListener(fd_);
    if (fd >= 0) {
      if (starved_->load(std::memory_order_relaxed)) starved_->store(false, std::memory_order_relaxed);  // the caller made room
      return std::unique_ptr<ByteStream>(std::make_unique<TcpStream>(fd));
    }
    if (IsShortage(errno)) starved_->store(true, std::memory_order_relaxed);
    if (!IsErrorOfTheConnection(errno)) return errno;
  }
  return EAGAIN;
}

SocketAddress TcpListener::LocalAddress() const { return SocketAddress::Local(fd_); }

}  // namespace weft::transport
