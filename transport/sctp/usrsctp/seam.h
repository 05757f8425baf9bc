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

// Connects the distribution's usrsctp with Weft's sockets, threads and clock, in place of its own. BUILD renames, in a
// copy of usrsctp's archive, the few symbols by which it uses the system; this file defines the new names. So usrsctp
// opens no descriptor, starts no thread and reads no clock. Real IP addresses and multihoming still work. The thread
// that holds the lock around usrsctp (Stack) is the only one inside.
//
// Nothing here is thread safe: there is one usrsctp in a process, and the caller serialises.
namespace weft::transport::sctp {

// An SCTP packet, from its common header on.
struct Packet {
  SocketAddress from, to;  // ports of UDP; 0: directly over IP
  std::span<const uint8_t> bytes;
};

struct LocalAddress {
  SocketAddress address;  // port 0
  std::string interface;  // its name
};

// What usrsctp needs from its surroundings.
class World {
 public:
  virtual ~World() = default;
  // Microseconds of a clock that never goes back.
  virtual uint64_t NowMicroseconds() = 0;
  virtual void FillRandom(void* to, size_t count) = 0;
  // Memory of that many bytes for the packet that Output() gets next; null: there is none now.
  virtual uint8_t* RoomForOutput(size_t bytes) = 0;
  // Whether the packet's destination may get DATA. A packet without DATA is sent in any case. `in_doubt`: a path of
  // that association became inactive, perhaps this one.
  virtual bool TakesData(const Packet& packet, bool in_doubt) = 0;
  // Sends a packet without checksum; its bytes are at the end of the memory from RoomForOutput(). Returns 0 or an
  // errno.
  virtual int Output(const Packet& packet) = 0;
};

// Initialises usrsctp, or initialises it again in a child of fork(), where the parent's state is abandoned. `udp`:
// packets may travel in UDP.
void StartUsrsctp(World& world, bool udp, const std::vector<LocalAddress>& addresses);
// Releases its memory if no socket is left, not even one whose association is about to end; otherwise returns false.
// For tests: a process keeps it.
bool StopUsrsctp();
// Adds addresses that appeared since.
void AddAddresses(const std::vector<LocalAddress>& addresses);

// No association is in doubt any more.
void PathsAreKnown();

// A packet has arrived. Returns false if it is not SCTP, or its checksum is wrong.
bool Input(const Packet& packet);

constexpr size_t kMostPiecesInside = 256;
// usrsctp_sendv and usrsctp_recvv accept only contiguous memory; these accept up to kMostPieces pieces. They return the
// same results, with errno. `more`: others follow at once, so the data may wait for them, or for SendQueued().
ssize_t SendPieces(struct socket* socket, std::span<const iovec> pieces, sctp_sndinfo info, bool more);
// Sends what waits in the association of `socket`, as far as allowed. `peer`: an address of the peer.
void SendQueued(struct socket* socket, const SocketAddress& peer);
ssize_t ReceivePieces(struct socket* socket, std::span<const iovec> pieces, sctp_rcvinfo* info, int* flags);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_SEAM_H_
