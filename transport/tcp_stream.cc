#include "transport/tcp_stream.h"

#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/dma_scope.h"
#include "base/high_descriptor.h"
#include "base/uncancelled.h"

namespace weft::transport {
namespace {

// Every TCP must accept segments of this size (RFC 9293 section 3.7.1).
constexpr size_t kSmallestSegment = 536;

void SetFlag(int fd, int level, int option) {
  int on = 1;
  setsockopt(fd, level, option, &on, sizeof on);
}

// What errno says about a read or write that moved nothing.
IoResult FromErrno() {
  // ENOBUFS passes: the kernel is short of memory for a moment, the stream is intact.
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return {IoResult::Kind::kWouldBlock, 0, 0};
  return {IoResult::Kind::kFailed, 0, errno};
}

bool IsEmpty(std::span<const iovec> parts) {
  return std::all_of(parts.begin(), parts.end(), [](const iovec& part) { return part.iov_len == 0; });
}

msghdr MessageOf(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // the kernel only reads the array
  message.msg_iovlen = std::min<size_t>(parts.size(), IOV_MAX);
  return message;
}

int Bind(int fd, const SocketAddress& local) {
  if (local.port() != 0) {
    SetFlag(fd, SOL_SOCKET, SO_REUSEADDR);
  } else {
    // Lets many connections share a local port when their peers differ.
    SetFlag(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
  }
  return bind(fd, local.get(), local.length()) == 0 ? 0 : errno;
}

int BindAndConnect(int fd, const SocketAddress& local, const SocketAddress& remote) {
  if (local.family() != AF_UNSPEC && !(local.is_wildcard() && local.port() == 0)) {
    if (int error = Bind(fd, local); error != 0) return error;
  }
  if (connect(fd, remote.get(), remote.length()) == 0) return 0;
  // An interrupted connect goes on by itself.
  return errno == EINPROGRESS || errno == EINTR ? 0 : errno;
}

}  // namespace

Result<std::unique_ptr<ByteStream>, int> TcpStream::StartConnect(const SocketAddress& local,
                                                                 const SocketAddress& remote) {
  int fd = LeaveRoomForSelect(socket(remote.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (fd < 0) return errno;
  auto stream = std::make_unique<TcpStream>(fd);
  if (int error = BindAndConnect(fd, local, remote); error != 0) return error;
  return std::unique_ptr<ByteStream>(std::move(stream));
}

// TCP's simultaneous open (RFC 9293 section 3.5), by a socket that connects to its own port.
Result<std::unique_ptr<ByteStream>, int> TcpStream::OpenLoop(const SocketAddress& local) {
  int fd = LeaveRoomForSelect(socket(local.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (fd < 0) return errno;
  auto stream = std::make_unique<TcpStream>(fd);
  if (bind(fd, local.get(), local.length()) != 0) return errno;
  const SocketAddress self = stream->LocalAddress();
  if (connect(fd, self.get(), self.length()) != 0 && errno != EINPROGRESS && errno != EINTR) return errno;
  return std::unique_ptr<ByteStream>(std::move(stream));
}

TcpStream::TcpStream(int fd) : fd_(fd) { SetFlag(fd_, IPPROTO_TCP, TCP_NODELAY); }

TcpStream::~TcpStream() {
  if (!aborted_) {
    // Closing a socket with unread bytes would reset the connection and take our last bytes with it.
    constexpr size_t kDiscard = 1 << 20;
    shutdown(fd_, SHUT_WR);
    [[maybe_unused]] ssize_t discarded = uncancelled::Receive(fd_, nullptr, kDiscard, MSG_TRUNC | MSG_DONTWAIT);
  }
  uncancelled::Close(fd_);
}

IoResult TcpStream::Read(std::span<const iovec> into) {
  if (aborted_) return {IoResult::Kind::kFailed, 0, ECONNABORTED};
  if (IsEmpty(into)) return {IoResult::Kind::kWouldBlock, 0, 0};
  const DmaScope dma;
  ssize_t count;
  do {
    if (into.size() == 1) {
      count = uncancelled::Receive(fd_, into[0].iov_base, into[0].iov_len, MSG_DONTWAIT);
    } else {
      msghdr message = MessageOf(into);
      count = uncancelled::ReceiveMessage(fd_, &message, MSG_DONTWAIT);
    }
  } while (count < 0 && errno == EINTR);
  if (count > 0) return {IoResult::Kind::kDone, static_cast<size_t>(count), 0};
  if (count == 0) return {IoResult::Kind::kEndOfStream, 0, 0};
  return FromErrno();
}

IoResult TcpStream::Write(std::span<const iovec> from) {
  if (aborted_) return {IoResult::Kind::kFailed, 0, ECONNABORTED};
  if (IsEmpty(from)) return {IoResult::Kind::kWouldBlock, 0, 0};
  const DmaScope dma;
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  ssize_t count;
  do {
    if (from.size() == 1) {
      count = uncancelled::Send(fd_, from[0].iov_base, from[0].iov_len, kFlags);
    } else {
      msghdr message = MessageOf(from);
      count = uncancelled::SendMessage(fd_, &message, kFlags);
    }
  } while (count < 0 && errno == EINTR);
  if (count >= 0) return {IoResult::Kind::kDone, static_cast<size_t>(count), 0};
  return FromErrno();
}

int TcpStream::ConnectError() {
  if (aborted_) return ECONNABORTED;
  if (connected_ || connect_error_ != 0) return connect_error_;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return connect_error_ = error;
  SocketAddress peer = PeerAddress();
  if (peer.family() == AF_UNSPEC) return EINPROGRESS;
  // Connecting to an ephemeral port of this host that nobody listens on can meet itself (RFC 9293's simultaneous open).
  if (peer == LocalAddress()) {
    Abort();
    return connect_error_ = ECONNREFUSED;
  }
  connected_ = true;
  return 0;
}

void TcpStream::ShutdownWrite() {
  if (!aborted_) shutdown(fd_, SHUT_WR);
}

void TcpStream::Abort() {
  if (aborted_) return;
  aborted_ = true;
  linger reset{.l_onoff = 1, .l_linger = 0};  // for close, if the disconnect below is refused
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  sockaddr disconnect{};
  disconnect.sa_family = AF_UNSPEC;
  // Sends RST now and keeps the descriptor.
  if (connect(fd_, &disconnect, sizeof disconnect) != 0) shutdown(fd_, SHUT_RDWR);
}

size_t TcpStream::SegmentSize() const {
  int size = 0;
  socklen_t length = sizeof size;
  if (getsockopt(fd_, IPPROTO_TCP, TCP_MAXSEG, &size, &length) != 0 || size <= 0) return kSmallestSegment;
  return static_cast<size_t>(size);
}

SocketAddress TcpStream::LocalAddress() const { return SocketAddress::Local(fd_); }

SocketAddress TcpStream::PeerAddress() const { return SocketAddress::Peer(fd_); }

}  // namespace weft::transport
