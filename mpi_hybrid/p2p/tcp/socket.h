#ifndef MPI_HYBRID_P2P_TCP_SOCKET_H_
#define MPI_HYBRID_P2P_TCP_SOCKET_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <span>
#include <string>

#include "base/descriptor.h"
#include "transport/socket_address.h"

namespace weft::mpi {

// A non-blocking TCP socket.
class Socket : public Descriptor {
 public:
  using Descriptor::Descriptor;

  // These return a socket, or none and errno. Sockets that carry messages detect by keepalive that the other host is
  // gone.
  static Socket Listen(const transport::SocketAddress& address);
  static Socket ListenEverywhere();  // on all addresses, of both families if there are two
  static Socket StartConnect(const transport::SocketAddress& address);
  Socket Accept() const;

  // Call it when the socket is ready for writing. 0: established; else the errno.
  int ConnectError() const;
  bool IsConnected() const;  // established and not reset since
  transport::SocketAddress LocalAddress() const;
  std::string PeerName() const;  // for messages
  void ShutdownWrite() const;
  void Shutdown() const;  // in both directions: unread data is lost
  // The socket is reported readable only when it has this many bytes (or is at the end of the stream).
  void SetLowWater(size_t bytes) const;

  // Return the number of bytes, 0 at the end of the stream (Read), or a negative errno.
  ssize_t Read(std::span<const iovec> into) const;
  ssize_t Write(std::span<const iovec> from) const;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_SOCKET_H_
