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

  // EMFILE, ENFILE, ENOBUFS, ENOMEM: there is a connection but no room for it; it stays in the backlog, and the network
  // lets the listener rest for a while before it reports it ready again.
  Result<std::unique_ptr<ByteStream>, int> Accept() override;
  SocketAddress LocalAddress() const override;
  int fd() const override { return fd_; }

  // Set by Accept when it lacked room, cleared by the network. Shared, because the network may look at it after a
  // handler destroyed the listener.
  using Starved = std::shared_ptr<std::atomic<bool>>;
  const Starved& starved() const { return starved_; }

 private:
  explicit TcpListener(int fd) : fd_(fd) {}

  const int fd_;
  const Starved starved_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace weft::transport

#endif  // TRANSPORT_TCP_LISTENER_H_
