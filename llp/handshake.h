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

// What comes before a Channel: the start-up of a stream, as a wire carries it out (MPA's is RFC 5044 section 7 and RFC 6581). When to give up, to
// try again or to ask a program is its owner's; what is said, and how, is the wire's. Nothing blocks. Not thread safe: the owner serialises.
namespace weft::llp {

// What a Weft end says of itself. Another make says nothing.
struct Claims {
  static constexpr uint8_t kReliable = 1, kUnreliable = 2;  // rdmap/delivery.h
  uint64_t host_id = 0;  // equal on both ends: same host
  uint8_t deliveries = 0;
  bool option_refused = false;  // of a rejection: for the vendor's option that the request names (rdma_reject_ece)
};

// What an end wants of a connection.
struct Proposal {
  uint16_t ird = 0, ord = 0;          // RDMA Reads that we take at once, and that we want to have outstanding
  std::vector<uint8_t> private_data;  // the program's
  Claims claims;
  // Whose it is: for selectors of faults, and for who reads a capture.
  uint32_t queue_pair = 0;
  std::string device, comment;
};

// Responder: what the peer asks for.
struct Request {
  struct Reads {
    uint16_t ird = 0, ord = 0;  // what we may set ours to
  };
  std::optional<Reads> reads;  // nullopt: it said nothing of them
  std::vector<uint8_t> private_data;
};

// What was agreed.
struct Agreement {
  Outcome outcome;
  bool reads_agreed = false;  // false: nothing was said of them, and outcome's IRD and ORD are 0
  std::optional<Claims> claims;       // the peer's, when it was told ours; of a rejection, too
  std::vector<uint8_t> private_data;  // initiator: the peer's program's
};

// What became of an Advance().
struct Progress {
  enum class Kind : uint8_t {
    kNothing,   // the handler hears when there may be more
    kReached,   // initiator: the peer is there, and its answer is waited for
    kAccepted,  // initiator: `agreement` and TakeChannel() say the rest
    kRejected,  // initiator: the peer's program said no, with `agreement.private_data`
    kRequested, // responder: `request` is here
    // The attempt is over, for `error` (an errno) and `why`. With EPROTO the peer broke the rules.
    kUnreachable,  // initiator: ECONNREFUSED: nobody is there, or there is no room
    kUnanswered,   // initiator: it was reset before a sign of an answer came: the peer has no room for us, or does not know this request
    kUnanswerable, // initiator: it ended in order before one came
    kLost,         // later, or any other way
  };
  Kind kind = Kind::kNothing;
  int error = 0;
  std::string why;
  Agreement agreement;
  Request request;
  // The peer is to hear the reason (Initiator::Refuse), by a Terminate of layer LLP with this code.
  std::optional<uint8_t> terminate_code;
};

// One side's start-up of one stream. Destruction ends what nobody took.
class Handshake {
 public:
  virtual ~Handshake() = default;
  // Starts an attempt; one before it was abandoned. `handler` hears, without locks, when Advance() may have something to do, until the attempt is
  // over. An errno: it cannot be started (EMFILE, ENETUNREACH ...).
  virtual int Begin(std::shared_ptr<transport::ReadyHandler> handler) = 0;
  virtual Progress Advance() = 0;
  // Ends the attempt at once, if there is one.
  virtual void Abandon() = 0;
  // Once, after kAccepted or Accept(). Ours to start; the responder's answer goes in front of what it sends.
  virtual std::unique_ptr<Channel> TakeChannel() = 0;
  // What is waited for, in words: "no MPA reply".
  virtual const char* missing() const = 0;
  // Ours, as far as it is known; the peer's.
  virtual transport::SocketAddress LocalAddress() const = 0;
  virtual transport::SocketAddress PeerAddress() const = 0;
};

class Initiator : public Handshake {
 public:
  // Attempts ended unanswered. The next one says less, for a peer that knows an older form only; false: there is none.
  virtual bool FallBack() = 0;
  // After a failure with a `terminate_code`: sends what `last` appends, then the end, and needs no more help.
  virtual void Refuse(const std::function<void(UlpduWriter&)>& last) = 0;
};

class Responder : public Handshake {
 public:
  // After kRequested, from when on Advance() tells whether the peer has left or broken the rules. EINVAL: too much private data. The attempt
  // is over otherwise.
  virtual Result<Agreement, int> Accept(Proposal ours) = 0;
  // The same. The answer goes out without more help. nullptr: nothing is said of us.
  virtual int Reject(const std::vector<uint8_t>& private_data, const Claims* claims) = 0;
};

// Accepts sessions of peers. Destruction closes it.
class Listener {
 public:
  virtual ~Listener() = default;
  // Once. `handler` hears when Accept() may have something.
  virtual void Watch(std::shared_ptr<transport::ReadyHandler> handler) = 0;
  // A new session, not begun, or an errno (EAGAIN: none is there).
  virtual Result<std::unique_ptr<Responder>, int> Accept() = 0;
  virtual transport::SocketAddress LocalAddress() const = 0;
};

// One way to a peer, and how it does, of a wire that may have several.
struct PathState {
  uint32_t association = 0;  // those with the same number carry the same connections
  transport::SocketAddress peer;
  const char* state = "";  // active, inactive, unconfirmed
  bool primary = false;
  uint32_t rtt_ms = 0;             // smoothed
  uint32_t congestion_window = 0;  // bytes
  uint32_t mtu = 0;                // bytes of chunks in a packet
  uint64_t packets_out = 0, bytes_out = 0, packets_in = 0, bytes_in = 0;
  uint32_t failures = 0;  // times it became inactive
};

// A lower layer of one kind, as connections are set up over it. Thread safe.
class Wire {
 public:
  virtual ~Wire() = default;
  // `local` may be the wildcard. EINVAL: too much private data.
  virtual Result<std::unique_ptr<Initiator>, int> Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote,
                                                          Proposal ours) = 0;
  // Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES ... . `only_v6` for the IPv6 wildcard.
  virtual Result<std::unique_ptr<Listener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                        bool reuse_address) = 0;
  // Whether a listener has the UDP port of its number besides.
  virtual bool listeners_take_udp_port() const { return false; }
  // A channel whose peer is itself. EOPNOTSUPP: there are none.
  virtual Result<std::unique_ptr<Channel>, int> OpenLoop(const transport::SocketAddress& /*local*/, const Proposal& /*ours*/) {
    return EOPNOTSUPP;
  }
  virtual std::vector<PathState> Paths() { return {}; }
};

}  // namespace weft::llp

#endif  // LLP_HANDSHAKE_H_
