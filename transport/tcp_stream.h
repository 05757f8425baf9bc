#ifndef TRANSPORT_TCP_STREAM_H_
#define TRANSPORT_TCP_STREAM_H_

#include <memory>

#include "base/result.h"
#include "transport/network.h"

namespace weft::transport {

// A non-blocking TCP socket. Owns the file descriptor.
class TcpStream : public ByteStream {
 public:
  // Starts connecting; the error is an errno. See Network::StartConnect.
  static Result<std::unique_ptr<ByteStream>, int> StartConnect(const SocketAddress& local, const SocketAddress& remote);

  // See Network::OpenLoop.
  static Result<std::unique_ptr<ByteStream>, int> OpenLoop(const SocketAddress& local);

  // Takes over `fd`, a non-blocking connected or connecting TCP socket, and turns Nagle's algorithm off.
  explicit TcpStream(int fd);
  ~TcpStream() override;
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  IoResult Read(std::span<const iovec> into) override;
  IoResult Write(std::span<const iovec> from) override;
  int ConnectError() override;
  void ShutdownWrite() override;
  // The descriptor stays open (and its number in use) until destruction, so that a watch on it stays valid.
  void Abort() override;
  size_t SegmentSize() const override;
  SocketAddress LocalAddress() const override;
  SocketAddress PeerAddress() const override;
  int fd() const override { return fd_; }

 private:
  const int fd_;
  bool aborted_ = false;
  bool connected_ = false;  // ConnectError() has returned success
  int connect_error_ = 0;   // SO_ERROR can be read only once
};

}  // namespace weft::transport

#endif  // TRANSPORT_TCP_STREAM_H_
