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

// Message streams: SCTP (RFC 9260) as wires and MPI's transport use it. Nothing here blocks. How packets travel, in UDP
// (RFC 6951) or in IP, is decided per association, by the peer's UDP port.
//
// Threads. An association, and a listener, may be used by one thread at a time; its owner serialises. Handlers are
// called on the network's thread, or on one that calls Network::DriveInline() or WatchGroup::Drive(), without any lock
// of this folder held, so that they may call back. Nobody else ever calls them, so whoever holds a lock that a handler
// takes may call everything here.
namespace weft::transport::sctp {

// Where a peer is.
struct Peer {
  // Each with the peer's SCTP port. The first is where the INIT goes; more are a help if that one is dead. What the
  // peer says of itself replaces them.
  std::vector<SocketAddress> addresses;
  uint16_t udp_port = 0;  // on which it takes SCTP over UDP; 0: it is spoken to in IP, which needs Sctp::native()
};

// Of memory, in one call.
constexpr size_t kMostPieces = 256;

struct OutgoingMessage {
  uint16_t stream = 0;
  uint32_t ppid = 0;  // payload protocol identifier, host byte order
  bool unordered = false;
  // A message may be handed over in parts: all but the last have this unset. Until the last came, other messages wait,
  // on whatever stream. A part is taken as far as there is room; a message that is handed over at once is taken whole
  // or not at all.
  bool end_of_record = true;
  bool more = false;              // others follow at once: its packet may wait for theirs, or for Flush()
  std::span<const iovec> pieces;  // at most kMostPieces, with at least one byte; copied
};

// Of the message that bytes belong to.
struct MessageInfo {
  uint16_t stream = 0;
  uint16_t ssn = 0;  // stream sequence number; means nothing if unordered
  uint32_t ppid = 0;
  bool unordered = false;
  bool begins = false;         // the first bytes of a message
  bool end_of_record = false;  // the last
};

enum class PathState : uint8_t {
  kUnconfirmed,  // no answer yet that proves that the address is the peer's (RFC 9260 section 5.4)
  kActive,
  kInactive,
};

// One address of the peer, and how it does.
struct Path {
  SocketAddress address;
  PathState state = PathState::kUnconfirmed;
  bool primary = false;
  Milliseconds smoothed_rtt{0};
  Milliseconds rto{0};
  uint32_t congestion_window = 0;  // bytes
  uint32_t mtu = 0;                // bytes of chunks in a packet
  // Packets that this process sent to it and got from it for this association, and their bytes, from SCTP's common
  // header on.
  uint64_t packets_out = 0, bytes_out = 0, packets_in = 0, bytes_in = 0;
  uint32_t failures = 0;  // times it became inactive
};

// What happened to an association, in order with the messages.
struct Event {
  enum class Kind : uint8_t {
    kUp,         // `streams_in`, `streams_out`, `adaptation` are what was agreed
    kRestarted,  // the peer came back without a memory of what was before (RFC 9260 section 5.2.4.1): the same fields
    kPeerShutsDown,  // it sends no more messages; nor can we
    kPathChanged,    // `path` is in `path_state`
    kRecordAborted,  // the rest of the message that was being received will not come
  };
  Kind kind = Kind::kUp;
  uint16_t streams_in = 0, streams_out = 0;
  std::optional<uint32_t> adaptation;  // the peer's (RFC 5061); nullopt: it sent none
  SocketAddress path;
  PathState path_state = PathState::kUnconfirmed;
};

struct Received {
  enum class Kind : uint8_t {
    kNothing,  // nothing is here; the handler hears when there is
    kMessage,  // `bytes` of one, `info`
    kEvent,    // `event`
    kEnded,    // the association was shut down in order; all that the peer sent was received
    // It is gone: `error` is ECONNREFUSED (nobody is there, while connecting), ETIMEDOUT (no answer), ECONNRESET (the
    // peer aborted it), EADDRINUSE (while connecting: another process of this host has our SCTP port there; another one will do) or another errno.
    kFailed,
  };
  Kind kind = Kind::kNothing;
  size_t bytes = 0;
  MessageInfo info;
  Event event;
  int error = 0;
};

// Between us and one peer, from Connect() or Accept() on. Destruction aborts it unless Shutdown() was called, which
// then goes on by itself.
class Association {
 public:
  virtual ~Association() = default;

  // `handler`, which the association keeps, hears of it when Receive() has something, until it said kNothing, and when
  // Send() that would have blocked may go on. It is called over and over until then: one that leaves the receiving to
  // another thread says SetReading(false). Once, before anything else.
  virtual void Watch(std::shared_ptr<ReadyHandler> handler) = 0;
  // `false`: the handler does not want to hear of what can be received; the peer is slowed down by its window. At first
  // true. Any thread.
  virtual void SetReading(bool reading) = 0;

  // kDone: `bytes` were taken, all of them but for a part of a message. kWouldBlock: there is no room (or it is not up
  // yet). kFailed: EMSGSIZE (longer than `send_buffer`), EINVAL (no such stream, no bytes), EPIPE (shut down), or the
  // association is gone.
  virtual IoResult Send(const OutgoingMessage& message) = 0;
  // For faults on demand: the packet that goes out next, for this association if nobody else sends meanwhile, is damaged on its way. False:
  // packets are not made here.
  virtual bool DamageNextPacket() = 0;
  // What waits because more was to follow goes out.
  virtual void Flush() = 0;
  // The next bytes of one message, or the next event. Messages are whole when their first bytes can be received, unless
  // they are longer than half of `receive_buffer`. The rest of a message comes before anything else. While no message
  // is under way `into` may be scribbled on whatever the outcome, so it is to be memory that is nobody else's; then it
  // needs 512 bytes.
  virtual Received Receive(std::span<const iovec> into) = 0;

  // For a thread that spins: takes in what came from the network and calls no handler. The network's thread calls those of others, and
  // this one's no more for what there is. `read`: it is received until that says kNothing, or Recall() called. `write`: a Send() that would
  // have blocked may go on.
  virtual Interest Poll() = 0;
  // That thread says so at each round: what others take in meanwhile, it comes for, and the handler is called only for what it did not come for
  // in time (below a millisecond and a half). Over with SetReading(true).
  virtual void Lend() = 0;
  // The handler is to hear again of what can be received.
  virtual void Recall() = 0;
  // Of the socket by which its packets come, for Network::Lend() and WatchGroup::Add().
  virtual WatchId PacketWatch() const = 0;

  // Ends in order: what was taken by Send() goes out, then SHUTDOWN. Receive() goes on until it says kEnded.
  virtual void Shutdown() = 0;
  // Ends at once; the peer is told by an ABORT, with `reason` in it (at most 128 bytes).
  virtual void Abort(const std::string& reason) = 0;

  // --- what it is; after its end what it was, or nothing ---

  virtual std::vector<SocketAddress> LocalAddresses() const = 0;  // with our port
  virtual std::vector<SocketAddress> PeerAddresses() const = 0;
  virtual uint16_t PeerUdpPort() const = 0;  // 0: in IP
  virtual std::vector<Path> Paths() const = 0;
  // EINVAL: the peer has no such address.
  virtual int SetPrimary(const SocketAddress& path) = 0;
  // The longest message that travels in one packet, on whatever path.
  virtual size_t FragmentationPoint() const = 0;
  // Bytes and messages that Send() took and the peer has not acknowledged are gone: false.
  virtual bool HasUnacknowledged() const = 0;
  // Since the last call the peer acknowledged something new, or it says that it has no room for more, or there is nothing that it has not
  // acknowledged. Of one that answers HEARTBEATs SCTP never says that it is lost (RFC 9260 section 8.1).
  virtual bool Advances() = 0;
};

// Accepts associations of peers. Destruction closes it, and aborts those that wait.
class Listener {
 public:
  virtual ~Listener() = default;
  // Hears of it when Accept() has something, until it said EAGAIN. Once.
  virtual void Watch(std::shared_ptr<ReadyHandler> handler) = 0;
  // One that is up (its first event says so), or an errno: EAGAIN: none waits.
  virtual Result<std::unique_ptr<Association>, int> Accept() = 0;
  virtual std::vector<SocketAddress> LocalAddresses() const = 0;
};

// SCTP of this process. Thread safe.
class Sctp {
 public:
  virtual ~Sctp() = default;

  // Never blocks; kUp or kFailed tells the outcome. `local_port` 0: one is chosen. Errors: EADDRINUSE, EADDRNOTAVAIL,
  // ENETUNREACH, EINVAL (no address, ports that differ), EPROTONOSUPPORT (in IP, when it is not native()), ENOBUFS ...
  // .
  virtual Result<std::unique_ptr<Association>, int> Connect(const Peer& peer, uint16_t local_port,
                                                            const Settings& settings) = 0;
  // `local` is used when `settings` names no addresses: it may be the wildcard of IPv4, or of IPv6 and with it of IPv4.
  // At the wildcard peers are told all addresses of this host that they may be able to reach. Takes packets in UDP, and
  // in IP if native().
  virtual Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog,
                                                        const Settings& settings) = 0;

  // On which this process takes SCTP over UDP: what peers are to be told. 0: none.
  virtual uint16_t udp_port() const = 0;
  virtual bool native() const = 0;

  // The paths of each association that there is.
  virtual std::vector<std::vector<Path>> AllPaths() const = 0;

  // For a thread that spins: takes in what came from the network and calls no handler. The network's thread calls those
  // of others than `mine` (which the caller looks at itself). Whether anything came.
  virtual bool Poll(const Association* mine) = 0;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_SCTP_H_
