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
  uint32_t interface = 0;  // index of the one to leave by; 0: the system chooses
  std::span<const iovec> pieces;
};

struct IncomingDatagram {
  iovec room{};       // the caller's; a longer datagram is cut off
  size_t length = 0;  // bytes written into `room`
  // Not 0, only with DatagramOptions::trains: several datagrams, one behind the other, each of this length but the last,
  // which may be shorter.
  size_t each = 0;
  bool cut_off = false;
  SocketAddress from;
  SocketAddress to;        // the host that the sender named, possibly a group; port 0. No family: not known
  uint32_t interface = 0;  // by which it came
};

struct DatagramOptions {
  bool only_v6 = false;  // for an IPv6 address
  bool shared =
      false;  // other sockets, of other processes too, may use the same address: each gets a group's datagrams
  SocketAddress group;  // with a family: joins it on `interface`, and gets no datagrams of other groups
  uint32_t interface = 0;
  int protocol = 0;    // not 0: packets of IP itself with this protocol, which needs CAP_NET_RAW. Ports are 0; of IPv4
                       // the header is received too
  // Datagrams of one length that go to one place one after the other are handed to the system as one, and received so
  // (IncomingDatagram::each), where it can: the cost of most of them is saved. Room for 64 KiB is wanted then.
  bool trains = false;
  bool refusals = false;  // hears (TakeRefusal) of hosts where nobody has the port that a datagram went to
  SocketAddress peer;  // with a family: talks to this one only, and hears (TakeError) when it refuses
};

// A datagram that came to a host where nobody has its port (ICMP).
struct RefusedDatagram {
  SocketAddress to;
  SocketAddress from;       // the host; no family: not known
  size_t length = 0;        // of what is known of it, from its beginning
};

// A bound UDP socket. Never waits; drops what does not fit, as UDP does. Send and Receive may be called from any
// thread. Owned by whoever opened it; destroyed after Network::Unwatch.
class DatagramSocket {
 public:
  virtual ~DatagramSocket() = default;
  // Hands datagrams to the network, in order; returns how many. If not all, `*error` is why the next one did not go:
  // EAGAIN (wait until it is writable) or its own errno (ENETUNREACH, EMSGSIZE ...).
  virtual size_t Send(std::span<const OutgoingDatagram> datagrams, int* error) = 0;
  // Takes up to that many of what waits; returns how many, 0 if nothing waits.
  virtual size_t Receive(std::span<IncomingDatagram> into) = 0;
  // What happened to datagrams that were sent to `peer`: 0 or an errno (ECONNREFUSED: nobody has the port). Makes the
  // socket readable.
  virtual int TakeError() { return 0; }
  // With DatagramOptions::refusals: one that was refused, and its first bytes in `room`. False: there is none. Makes the socket readable; the
  // system forgets some when there are many.
  virtual bool TakeRefusal(iovec /*room*/, RefusedDatagram* /*refused*/) { return false; }
  // Send() or Receive() came upon one.
  virtual bool MayHaveRefusal() const { return false; }
  virtual SocketAddress LocalAddress() const = 0;
  virtual int fd() const { return -1; }
};

}  // namespace weft::transport

#endif  // TRANSPORT_DATAGRAM_SOCKET_H_
