#ifndef TRANSPORT_TCP_LISTENER_H_
#define TRANSPORT_TCP_LISTENER_H_

#include <atomic>
#include <memory>

#include "base/result.h"
#include "transport/network.h"

namespace weft::transport {

// A listening TCP socket. Owns the file descriptor.
class TcpListener : public Listener {
 public:
  // See Network::Listen; the error is an errno.
  static Result<std::unique_ptr<Listener>, int> Open(const SocketAddress& local, int backlog, bool only_v6,
                                                     bool reuse_address);

  ~TcpListener() override;
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  // EMFILE, ENFILE, ENOBUFS, ENOMEM: a connection waits, but there is no room for it. It stays in the backlog, and the
  // network reports the listener as ready again only after a while.
  Result<std::unique_ptr<ByteStream>, int> Accept() override;
  SocketAddress LocalAddress() const override;
  int fd() const override { return fd_; }

  // Set by Accept if there is no room, cleared by the network. Shared, because the network may read it after a handler
  // has destroyed the listener.
  using Starved = std::shared_ptr<std::atomic<bool>>;
  const Starved& starved() const { return starved_; }

 private:
  explicit TcpListener(int fd) : fd_(fd) {}

  const int fd_;
  const Starved starved_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace weft::transport

#endif  // TRANSPORT_TCP_LISTENER_H_
