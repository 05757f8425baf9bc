#ifndef TRANSPORT_LOCAL_ADDRESS_H_
#define TRANSPORT_LOCAL_ADDRESS_H_

#include "base/result.h"
#include "transport/socket_address.h"

namespace weft::transport {

// The local address from which the kernel's routing reaches `destination`, with `source`'s port. If `source` names a
// host, that address must be able to reach `destination`. If not (no family, or the wildcard), one is chosen. Sends
// nothing, never blocks. Errors: ENETUNREACH, EHOSTUNREACH, EINVAL (a link-local destination without scope, or
// different families) ...
Result<SocketAddress, int> SourceAddressFor(const SocketAddress& source,
                                                       const SocketAddress& destination);

// Reserves a TCP or UDP port between rdma_bind_addr and rdma_listen or rdma_connect, and tells which port was chosen.
// RDMA port spaces have no TIME-WAIT, so a port whose old connections linger is free.
class PortReservation {
 public:
  struct Options {
    // Sockets that all allow reuse and do not listen may share the port (RDMA_OPTION_ID_REUSEADDR).
    bool reuse_address = false;
    bool only_v6 = false;
    bool udp_too = false;   // a chosen port is also free for UDP, as far as can be told without reserving it
    // The number stands for a port that is not TCP's: no socket shares it, not even one of this process.
    bool alone = false;
    bool datagram = false;  // UDP. Call CloseSocket() before this process opens the port elsewhere
  };

  PortReservation() = default;
  ~PortReservation() { Release(); }
  PortReservation(const PortReservation&) = delete;
  PortReservation& operator=(const PortReservation&) = delete;

  // Called once. Port 0: the kernel chooses. Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL ...
  int Reserve(const SocketAddress& address, const Options& options);
  const SocketAddress& address() const { return address_; }
  bool held() const { return address_.family() != 0; }
  // The listener or the connection has the port now. Within this process the port stays reserved.
  void CloseSocket();
  void Release();

 private:
  friend class ReservedPorts;
  int TryToReserve(const SocketAddress& address, const Options& options, bool exclusively);
  SocketAddress address_;
  Options options_;
  int fd_ = -1;
};

}  // namespace weft::transport

#endif  // TRANSPORT_LOCAL_ADDRESS_H_
