#ifndef TRANSPORT_DATAGRAM_SOCKET_H_
#define TRANSPORT_DATAGRAM_SOCKET_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/socket_address.h"

namespace weft::transport {

struct OutgoingDatagram {
  SocketAddress to;
  SocketAddress from;      // its host is the source; no family: the system chooses
  uint32_t interface = 0;  // index of the outgoing interface; 0: the system chooses
  std::span<const iovec> pieces;
};

struct IncomingDatagram {
  iovec room{};       // the caller's; a longer datagram is truncated
  size_t length = 0;  // bytes written into `room`
  // Not 0 only with DatagramOptions::trains: `room` holds several datagrams, one behind the other. Each has this
  // length, except the last, which may be shorter.
  size_t each = 0;
  bool cut_off = false;
  SocketAddress from;
  SocketAddress to;        // the destination address in the packet, possibly a group; port 0. No family: unknown
  uint32_t interface = 0;  // index of the incoming interface
};

struct DatagramOptions {
  bool only_v6 = false;  // for an IPv6 address
  // Other sockets, also of other processes, may use the same address: each gets a group's datagrams.
  bool shared = false;
  SocketAddress group;  // with a family: joins it on `interface`, and receives no datagrams of other groups
  uint32_t interface = 0;
  // Not 0: IP packets with this protocol instead of UDP, which needs CAP_NET_RAW. Ports are 0. For IPv4 the header is
  // received, too.
  int protocol = 0;
  // If possible, hands consecutive datagrams of one length and destination to the system as one, and receives them so
  // (IncomingDatagram::each). This saves the cost of most of them. The receiver should have room for 64 KiB.
  bool trains = false;
  bool refusals = false;  // report (TakeRefusal) hosts on which the destination port is closed
  SocketAddress peer;  // with a family: connected to this peer only; reports (TakeError) its refusals
};

// A datagram whose destination host reported that the port is closed (ICMP).
struct RefusedDatagram {
  SocketAddress to;
  SocketAddress from;       // the host; no family: unknown
  size_t length = 0;        // length of the part that is known, from the beginning
};

// A bound UDP socket. Never waits; drops what does not fit, as UDP does. Send and Receive may be called from any
// thread. The caller that opened it owns it, and destroys it after Network::Unwatch.
class DatagramSocket {
 public:
  virtual ~DatagramSocket() = default;
  // Sends datagrams, in order. Returns how many. If not all, `*error` tells why the next one was not sent: EAGAIN (wait
  // until the socket is writable) or an errno of this datagram (ENETUNREACH, EMSGSIZE ...).
  virtual size_t Send(std::span<const OutgoingDatagram> datagrams, int* error) = 0;
  // Receives waiting datagrams, at most as many as `into` has. Returns how many; 0 if none waits.
  virtual size_t Receive(std::span<IncomingDatagram> into) = 0;
  // An error of earlier datagrams to `peer`: 0 or an errno (ECONNREFUSED: the port is closed). An error makes the
  // socket readable.
  virtual int TakeError() { return 0; }
  // With DatagramOptions::refusals: takes a refused datagram, and puts its first bytes into `room`. Returns false if
  // there is none. A refusal makes the socket readable. If there are many, the system drops some.
  virtual bool TakeRefusal(iovec /*room*/, RefusedDatagram* /*refused*/) { return false; }
  // Send() or Receive() has noticed a refusal.
  virtual bool MayHaveRefusal() const { return false; }
  virtual SocketAddress LocalAddress() const = 0;
  virtual int fd() const { return -1; }
};

}  // namespace weft::transport

#endif  // TRANSPORT_DATAGRAM_SOCKET_H_
