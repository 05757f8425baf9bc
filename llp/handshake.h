#ifndef LLP_HANDSHAKE_H_
#define LLP_HANDSHAKE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "llp/channel.h"
#include "llp/stream.h"
#include "llp/ulpdu.h"
#include "transport/network.h"
#include "transport/socket_address.h"

// The start-up of a stream, which precedes its Channel, as each wire performs it (for MPA: RFC 5044 section 7 and RFC
// 6581). The wire decides what is sent and how. The owner decides when to give up, to retry or to ask a program. No
// call blocks. Not thread safe: the owner serialises the calls.
namespace weft::llp {

// What a Weft end says about itself. Other implementations say nothing.
struct Claims {
  // Deliveries (rdmap/delivery.h) that it asks for, and kAtomics: it takes atomics on a plain stream, too (RFC 7306).
  static constexpr uint8_t kReliable = 1, kUnreliable = 2, kAtomics = 32;
  static constexpr uint8_t kOffers = kReliable | kUnreliable | kAtomics;
  uint64_t host_id = 0;  // equal on both ends: same host
  uint8_t offers = 0;    // of kOffers
  bool option_refused = false;  // in a rejection: the reason is the vendor option of the request (rdma_reject_ece)
};

// What an end requests for a connection.
struct Proposal {
  uint16_t ird = 0, ord = 0;          // RDMA Reads that we accept at once, and that we want to have outstanding
  std::vector<uint8_t> private_data;  // the program's
  Claims claims;
  bool shares_memory = true;  // may use memory of the host if both ends are on it; see WEFT_SAME_HOST
  // The queue pair, for fault selectors and for readers of a capture.
  uint32_t queue_pair = 0;
  std::string device, comment;
};

// Responder: what the peer requests.
struct Request {
  struct Reads {
    uint16_t ird = 0, ord = 0;  // the values that we may use for ours
  };
  std::optional<Reads> reads;  // nullopt: the request did not say
  std::vector<uint8_t> private_data;
};

// What was agreed.
struct Agreement {
  Outcome outcome;
  bool reads_agreed = false;  // false: Reads were not negotiated, and the IRD and ORD of `outcome` are 0
  std::optional<Claims> claims;       // the peer's, if the peer was told ours; also in a rejection
  std::vector<uint8_t> private_data;  // initiator: private data of the peer's program
};

// Result of Advance().
struct Progress {
  enum class Kind : uint8_t {
    kNothing,   // `handler` is called when there may be more
    kReached,   // initiator: the peer is connected; its answer is awaited
    kAccepted,  // initiator: see `agreement` and TakeChannel()
    kRejected,  // initiator: the peer's program rejected, with `agreement.private_data`
    kRequested, // responder: `request` has arrived
    // The attempt is over, for `error` (an errno) and `why`. With EPROTO the peer broke the rules.
    kUnreachable,  // initiator: not connected; ECONNREFUSED: no process listens, or the peer has no room
    // Initiator: reset before any part of an answer arrived: the peer has no room, or does not know this form of request.
    kUnanswered,
    kUnanswerable, // initiator: ended in order before an answer arrived
    kLost,         // ended later, or in another way
  };
  Kind kind = Kind::kNothing;
  int error = 0;
  std::string why;
  Agreement agreement;
  Request request;
  // The peer must be told the reason (Initiator::Refuse) by a Terminate of layer LLP with this code.
  std::optional<uint8_t> terminate_code;
};

// The start-up of one stream, as one side sees it. Destruction ends the stream if nobody has taken it.
class Handshake {
 public:
  virtual ~Handshake() = default;
  // Starts an attempt; the one before it was abandoned. `handler` is called, without locks, when Advance() may have
  // something to do, until the attempt is over. Returns an errno if the attempt cannot start (EMFILE, ENETUNREACH ...).
  virtual int Begin(std::shared_ptr<transport::ReadyHandler> handler) = 0;
  virtual Progress Advance() = 0;
  // Ends the attempt at once, if there is one.
  virtual void Abandon() = 0;
  // Called once, after kAccepted or Accept(). The caller starts the channel. The responder's answer precedes everything
  // else that it sends.
  virtual std::unique_ptr<Channel> TakeChannel() = 0;
  // Describes what is awaited: "no MPA reply".
  virtual const char* missing() const = 0;
  // Our address, as far as it is known, and the peer's.
  virtual transport::SocketAddress LocalAddress() const = 0;
  virtual transport::SocketAddress PeerAddress() const = 0;
};

class Initiator : public Handshake {
 public:
  // Called after attempts that were not answered. The next attempt uses an older form of the request, for a peer that
  // knows no newer one. Returns false if there is no older form.
  virtual bool FallBack() = 0;
  // After a failure with a `terminate_code`: sends what `last` appends, then the end of the stream, without further
  // calls.
  virtual void Refuse(const std::function<void(UlpduWriter&)>& last) = 0;
};

class Responder : public Handshake {
 public:
  // Called after kRequested. From then on Advance() tells whether the peer has left or broken the rules. EINVAL: too
  // much private data. After any other error the attempt is over.
  virtual Result<Agreement, int> Accept(Proposal ours) = 0;
  // Like Accept(), but rejects. The answer is sent without further calls. `claims` nullptr: nothing is said about us.
  virtual int Reject(const std::vector<uint8_t>& private_data, const Claims* claims) = 0;
};

// Accepts incoming sessions. Destruction closes the listener.
class Listener {
 public:
  virtual ~Listener() = default;
  // Called once. `handler` is called when Accept() may have something.
  virtual void Watch(std::shared_ptr<transport::ReadyHandler> handler) = 0;
  // Returns a new session that has not begun, or an errno (EAGAIN: there is none).
  virtual Result<std::unique_ptr<Responder>, int> Accept() = 0;
  virtual transport::SocketAddress LocalAddress() const = 0;
};

// One path to a peer and its state, for a wire that may have several paths.
struct PathState {
  uint32_t association = 0;  // paths with the same number carry the same connections
  transport::SocketAddress peer;
  const char* state = "";  // "active", "inactive" or "unconfirmed"
  bool primary = false;
  uint32_t rtt_ms = 0;             // smoothed
  uint32_t congestion_window = 0;  // bytes
  uint32_t mtu = 0;                // bytes of chunks in a packet
  uint64_t packets_out = 0, bytes_out = 0, packets_in = 0, bytes_in = 0;
  uint32_t failures = 0;  // how often it became inactive
};

// One kind of lower layer: sets up connections over it. Thread safe.
class Wire {
 public:
  virtual ~Wire() = default;
  // `local` may be the wildcard address. EINVAL: too much private data.
  virtual Result<std::unique_ptr<Initiator>, int> Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote,
                                                          Proposal ours) = 0;
  // Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES ... . `only_v6` for the IPv6 wildcard.
  virtual Result<std::unique_ptr<Listener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                        bool reuse_address) = 0;
  // Whether a listener also binds the UDP port with the same number.
  virtual bool listeners_take_udp_port() const { return false; }
  // Opens a channel that is connected to itself. EOPNOTSUPP: the wire has none.
  virtual Result<std::unique_ptr<Channel>, int> OpenLoop(const transport::SocketAddress& /*local*/, const Proposal& /*ours*/) {
    return EOPNOTSUPP;
  }
  virtual std::vector<PathState> Paths() { return {}; }
};

}  // namespace weft::llp

#endif  // LLP_HANDSHAKE_H_
