#ifndef TRANSPORT_SCTP_USRSCTP_SEAM_H_
#define TRANSPORT_SCTP_USRSCTP_SEAM_H_

#include <sys/socket.h>
#include <sys/uio.h>
#include <usrsctp.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/socket_address.h"

// Where the distribution's usrsctp meets the world: not its own sockets, threads and clock, but ours. BUILD renames, in
// a copy of its archive, the few symbols by which it reaches them; this file defines those names. So usrsctp opens no
// descriptor, starts no thread and reads no clock, real IP addresses and multihoming stay, and whoever holds the lock
// around it (Stack) is the only one inside.
//
// Nothing here is thread safe: usrsctp is one per process, and the caller serialises.
namespace weft::transport::sctp {

// A packet of SCTP, from its common header on.
struct Packet {
  SocketAddress from, to;  // ports: of UDP; 0: in IP
  std::span<const uint8_t> bytes;
};

struct LocalAddress {
  SocketAddress address;  // port 0
  std::string interface;  // its name
};

// What usrsctp sees of the world.
class World {
 public:
  virtual ~World() = default;
  // Microseconds of a clock that never goes back.
  virtual uint64_t NowMicroseconds() = 0;
  virtual void FillRandom(void* to, size_t count) = 0;
  // Memory for the packet that Output() gets next, of that many bytes; null: there is none now.
  virtual uint8_t* RoomForOutput(size_t bytes) = 0;
  // Whether the address that this packet goes to is one for DATA; what is none goes there in any case. `in_doubt`: a path
  // of that association became inactive, perhaps this one.
  virtual bool TakesData(const Packet& packet, bool in_doubt) = 0;
  // Takes a packet without its checksum, whose bytes are at the end of what RoomForOutput() gave. 0 or an errno.
  virtual int Output(const Packet& packet) = 0;
};

// Makes usrsctp ready, or ready again in a child of fork(), where the parent's state is left behind. `udp`: packets may
// go over it.
void StartUsrsctp(World& world, bool udp, const std::vector<LocalAddress>& addresses);
// Gives back what it has, if no socket is left, not even one whose association is about to end: false if one is. For
// tests: a process keeps it.
bool StopUsrsctp();
// Addresses that came since.
void AddAddresses(const std::vector<LocalAddress>& addresses);

// No association is in doubt any more.
void PathsAreKnown();

// A packet has come. False: it is no packet of SCTP, or its checksum is wrong.
bool Input(const Packet& packet);

constexpr size_t kMostPiecesInside = 256;
// usrsctp_sendv and usrsctp_recvv, which know only contiguous memory, with at most that many pieces. What they return, with
// errno. `more`: others follow at once, and it may wait for them, or for SendQueued().
ssize_t SendPieces(struct socket* socket, std::span<const iovec> pieces, sctp_sndinfo info, bool more);
// What waits in the association of `socket` is sent, as far as it may be. `peer`: an address of it.
void SendQueued(struct socket* socket, const SocketAddress& peer);
ssize_t ReceivePieces(struct socket* socket, std::span<const iovec> pieces, sctp_rcvinfo* info, int* flags);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_SEAM_H_
