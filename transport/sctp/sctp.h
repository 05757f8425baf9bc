#ifndef TRANSPORT_SCTP_SCTP_H_
#define TRANSPORT_SCTP_SCTP_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/network.h"
#include "transport/sctp/settings.h"
#include "transport/socket_address.h"

// Message streams: SCTP (RFC 9260) as wires and MPI's transport use it. No call blocks. For each association, the
// peer's UDP port decides whether packets travel in UDP (RFC 6951) or directly in IP.
//
// Threads. One thread at a time may use an association or a listener; the owner serialises the calls. Handlers are
// called on the network's thread, or on a thread that calls Network::DriveInline() or WatchGroup::Drive(). No lock of
// this folder is held, so handlers may call back. No other thread calls handlers, so a caller may hold a lock that a
// handler takes.
namespace weft::transport::sctp {

// The address of a peer.
struct Peer {
  // Each with the peer's SCTP port. INIT goes to the first; the others are used if that one does not answer. The
  // addresses that the peer itself reports replace them.
  std::vector<SocketAddress> addresses;
  uint16_t udp_port = 0;  // where it receives SCTP over UDP; 0: directly over IP, which needs Sctp::native()
};

// Maximum number of memory pieces in one call.
constexpr size_t kMostPieces = 256;

struct OutgoingMessage {
  uint16_t stream = 0;
  uint32_t ppid = 0;  // payload protocol identifier, host byte order
  bool unordered = false;
  // A message may be handed over in parts; all but the last have this unset. Until the last part, other messages wait,
  // on every stream. A part is accepted as far as there is room. A message that is not in parts is accepted whole or
  // not at all.
  bool end_of_record = true;
  bool more = false;              // others follow at once: the packet may wait for them, or for Flush()
  std::span<const iovec> pieces;  // at most kMostPieces, with at least one byte; copied
};

// Information about the message to which received bytes belong.
struct MessageInfo {
  uint16_t stream = 0;
  uint16_t ssn = 0;  // stream sequence number; undefined if unordered
  uint32_t ppid = 0;
  bool unordered = false;
  bool begins = false;         // the first bytes of a message
  bool end_of_record = false;  // the last bytes
};

enum class PathState : uint8_t {
  kUnconfirmed,  // no answer has proved yet that the address is the peer's (RFC 9260 section 5.4)
  kActive,
  kInactive,
};

// One address of the peer, and its state.
struct Path {
  SocketAddress address;
  PathState state = PathState::kUnconfirmed;
  bool primary = false;
  Milliseconds smoothed_rtt{0};
  Milliseconds rto{0};
  uint32_t congestion_window = 0;  // bytes
  uint32_t mtu = 0;                // bytes of chunks in a packet
  // Packets that this process sent to it and received from it for this association, and their bytes, from SCTP's common
  // header on.
  uint64_t packets_out = 0, bytes_out = 0, packets_in = 0, bytes_in = 0;
  uint32_t failures = 0;  // how often it became inactive
};

// An event of an association, in order with the messages.
struct Event {
  enum class Kind : uint8_t {
    kUp,         // the agreed values are in `streams_in`, `streams_out` and `adaptation`
    // The peer came back without its earlier state (RFC 9260 section 5.2.4.1). The same fields.
    kRestarted,
    kPeerShutsDown,  // the peer sends no more messages, and we cannot either
    kPathChanged,    // `path` is now in `path_state`
    kRecordAborted,  // the rest of the message being received will not arrive
  };
  Kind kind = Kind::kUp;
  uint16_t streams_in = 0, streams_out = 0;
  std::optional<uint32_t> adaptation;  // the peer's (RFC 5061); nullopt: it sent none
  SocketAddress path;
  PathState path_state = PathState::kUnconfirmed;
};

struct Received {
  enum class Kind : uint8_t {
    kNothing,  // nothing has arrived; the handler is called when something has
    kMessage,  // `bytes` of a message, and `info`
    kEvent,    // `event`
    kEnded,    // the association was shut down in order; everything that the peer sent was received
    // The association is gone. `error` is ECONNREFUSED (while connecting: no process listens), ETIMEDOUT (no answer),
    // ECONNRESET (the peer aborted it), EADDRINUSE (while connecting: another process of this host has our SCTP port
    // there; use another port), or another errno.
    kFailed,
  };
  Kind kind = Kind::kNothing;
  size_t bytes = 0;
  MessageInfo info;
  Event event;
  int error = 0;
};

// An association with one peer, from Connect() or Accept() on. Destruction aborts it, unless Shutdown() was called; the
// shutdown then completes by itself.
class Association {
 public:
  virtual ~Association() = default;

  // Called once, before anything else. The association keeps `handler`. It is called when Receive() has something,
  // until Receive() returns kNothing, and when a Send() that would have blocked may be repeated. It is called again and
  // again until then; a handler that leaves receiving to another thread calls SetReading(false).
  virtual void Watch(std::shared_ptr<ReadyHandler> handler) = 0;
  // `false`: the handler is not called for received data; the window slows the peer down. Initially true. Any thread.
  virtual void SetReading(bool reading) = 0;

  // kDone: `bytes` were accepted: all of them, except for a part of a message. kWouldBlock: there is no room, or the
  // association is not up yet. kFailed: EMSGSIZE (longer than `send_buffer`), EINVAL (no such stream, no bytes), EPIPE
  // (shut down), or the association is gone.
  virtual IoResult Send(const OutgoingMessage& message) = 0;
  // For faults: the next packet sent is damaged on the wire. It is one of this association if no other sends meanwhile.
  // Returns false if this implementation does not make packets itself.
  virtual bool DamageNextPacket() = 0;
  // Sends data that waits because more was announced.
  virtual void Flush() = 0;
  // The next bytes of one message, or the next event. When the first bytes of a message can be received, the whole
  // message has arrived, unless it is longer than half of `receive_buffer`. The rest of a message comes before anything
  // else. If no message is in progress, `into` may be overwritten whatever the outcome. So it must not be shared
  // memory, and needs 512 bytes.
  virtual Received Receive(std::span<const iovec> into) = 0;

  // For a spinning thread: receives from the network and calls no handler. The network's thread calls those of other
  // associations, and no longer this one's for what is reported here. `read`: call Receive() until it returns kNothing,
  // or call Recall(). `write`: a Send() that would have blocked may be repeated.
  virtual Interest Poll() = 0;
  // The spinning thread calls this in each round: it fetches what other threads receive meanwhile. The handler is
  // called only for data that it does not fetch in time (less than 1.5 ms). Ends with SetReading(true).
  virtual void Lend() = 0;
  // The handler is called again for what can be received.
  virtual void Recall() = 0;
  // The watch of the socket for the association's packets, for Network::Lend() and WatchGroup::Add().
  virtual WatchId PacketWatch() const = 0;

  // Ends in order: sends what Send() accepted, then SHUTDOWN. Receive() continues until it returns kEnded.
  virtual void Shutdown() = 0;
  // Ends at once. An ABORT tells the peer, with `reason` in it (at most 128 bytes).
  virtual void Abort(const std::string& reason) = 0;

  // --- state; after the end the last state, or nothing ---

  virtual std::vector<SocketAddress> LocalAddresses() const = 0;  // with our port
  virtual std::vector<SocketAddress> PeerAddresses() const = 0;
  virtual uint16_t PeerUdpPort() const = 0;  // 0: directly over IP
  virtual std::vector<Path> Paths() const = 0;
  // EINVAL: the peer has no such address.
  virtual int SetPrimary(const SocketAddress& path) = 0;
  // The longest message that fits one packet on every path.
  virtual size_t FragmentationPoint() const = 0;
  // False: the peer has acknowledged all bytes and messages that Send() accepted.
  virtual bool HasUnacknowledged() const = 0;
  // Since the last call, the peer has acknowledged something new, or reports that it has no room, or everything is
  // acknowledged. SCTP never reports a peer as lost if it answers HEARTBEATs (RFC 9260 section 8.1).
  virtual bool Advances() = 0;
};

// Accepts incoming associations. Destruction closes it, and aborts waiting ones.
class Listener {
 public:
  virtual ~Listener() = default;
  // Called once. `handler` is called when Accept() has something, until it returns EAGAIN.
  virtual void Watch(std::shared_ptr<ReadyHandler> handler) = 0;
  // An association that is up (its first event says so), or an errno: EAGAIN: none waits.
  virtual Result<std::unique_ptr<Association>, int> Accept() = 0;
  virtual std::vector<SocketAddress> LocalAddresses() const = 0;
};

// SCTP of this process. Thread safe.
class Sctp {
 public:
  virtual ~Sctp() = default;

  // Never blocks; the event kUp or kFailed tells the outcome. `local_port` 0: one is chosen. Errors: EADDRINUSE,
  // EADDRNOTAVAIL, ENETUNREACH, EINVAL (no address, different ports), EPROTONOSUPPORT (directly over IP, but not
  // native()), ENOBUFS ...
  virtual Result<std::unique_ptr<Association>, int> Connect(const Peer& peer, uint16_t local_port,
                                                            const Settings& settings) = 0;
  // `local` is used if `settings` names no addresses. It may be the wildcard of IPv4, or of IPv6, which includes IPv4.
  // At the wildcard, peers are told all addresses of this host that they may be able to reach. Accepts packets in UDP,
  // and directly in IP if native().
  virtual Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog,
                                                        const Settings& settings) = 0;

  // The UDP port on which this process receives SCTP; peers must be told. 0: none.
  virtual uint16_t udp_port() const = 0;
  virtual bool native() const = 0;

  // The paths of each existing association.
  virtual std::vector<std::vector<Path>> AllPaths() const = 0;

  // For a spinning thread: receives from the network and calls no handler. The network's thread calls those of all
  // associations except `mine`, which the caller examines itself. Returns whether anything arrived.
  virtual bool Poll(const Association* mine) = 0;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_SCTP_H_
