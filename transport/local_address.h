#ifndef TRANSPORT_LOCAL_ADDRESS_H_
#define TRANSPORT_LOCAL_ADDRESS_H_

#include "base/result.h"
#include "transport/socket_address.h"

namespace weft::transport {

// The local address from which the kernel's routing reaches `destination`, with `source`'s port. `source` with a host
// given must be able to reach it; with none (no family, or the wildcard) one is chosen. Sends nothing, never blocks.
// Errors: ENETUNREACH, EHOSTUNREACH, EINVAL (a link-local destination without scope, families that differ) ...
Result<SocketAddress, int> SourceAddressFor(const SocketAddress& source,
                                                       const SocketAddress& destination);

// Keeps others off a TCP port, or a UDP port, between rdma_bind_addr and rdma_listen or rdma_connect, and says which port was chosen.
// RDMA port spaces know no TIME-WAIT, so a port whose old connections linger is free.
class PortReservation {
 public:
  struct Options {
    bool reuse_address = false;  // both reusable and neither listening: may share (RDMA_OPTION_ID_REUSEADDR)
    bool only_v6 = false;
    bool udp_too = false;   // a port that is chosen is free as UDP's, too, as far as can be seen without keeping it
    bool alone = false;     // the number stands for a port of something else than TCP: no socket shares it, of this process either
    bool datagram = false;  // UDP. CloseSocket() before somebody else of this process opens the port
  };

  PortReservation() = default;
  ~PortReservation() { Release(); }
  PortReservation(const PortReservation&) = delete;
  PortReservation& operator=(const PortReservation&) = delete;

  // Port 0: the kernel chooses. Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL ... Once.
  int Reserve(const SocketAddress& address, const Options& options);
  const SocketAddress& address() const { return address_; }
  bool held() const { return address_.family() != 0; }
  // The listener or the connection owns the port now; within this process it stays taken.
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
