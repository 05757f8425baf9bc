#ifndef RDMAP_DELIVERY_H_
#define RDMAP_DELIVERY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"
#include "ddp/types.h"

// The extended stream between two Weft ends. It keeps the InfiniBand semantics that verbs programs expect: a request is
// complete when the peer has carried it out, and a request that finds no posted receive waits.
//
// Each end numbers the request messages that it sends (Writes, Sends, Immediate Data, Read and Atomic Requests) in the
// order of the stream, from 1 on, modulo 2^32. The other end acknowledges them. If it has no receive for a request, it
// refuses the request and drops all requests behind it, until the sender announces, some time later, that it starts
// again from there. Responses and acknowledgements continue meanwhile.
//
// A targeted stream (the verbs' extended reliable connection, XRC) carries requests for several receivers, each with
// its own receives and memory. The sender names the target before a request whose target differs from that of the
// request before.
namespace weft::rdmap {

// How an end handles the requests of its peer. Both ends agree on it (llp/handshake.h).
enum class Delivery : uint8_t {
  kPlain,       // RFC 5040, with nothing added
  kReliable,    // acknowledged; without a posted receive the peer waits
  kUnreliable,  // not acknowledged; messages that cannot be placed are dropped (the verbs' unreliable connection)
};

// Which streams have a message: all; those with atomics (RFC 7306), which are all extended ones, and plain ones if both ends say so; extended ones.
enum class Streams : uint8_t { kAll, kWithAtomics, kExtended };

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |      Kind     |     Timer     |             Zero              |
// |                            Sequence                           |
// |               MSN of the next message on QN 0                 |
// |               MSN of the next message on QN 1                 |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// The payload of opcode 15 on QN 4, in one segment. Its own MSN is zero, because it may stand between the segments of
// other messages.
struct DeliveryMessage {
  static constexpr size_t kLength = 16;

  enum class Kind : uint8_t {
    kAcknowledge = 0,  // all requests up to `sequence` were carried out (Reads and atomics: accepted)
    // The same, and request `sequence + 1` found no receive: send it again after `timer`, with the MSNs below.
    kNotReady = 1,
    kResume = 2,       // the next request has number `sequence`
    kTarget = 3,       // targeted streams: the following requests are for target `sequence`
  };
  Kind kind = Kind::kAcknowledge;
  uint8_t timer = 0;  // kNotReady: min_rnr_timer of ibv_modify_qp(3), 0 to 31
  uint32_t sequence = 0;
  ddp::Msn send_msn, read_msn;  // kNotReady

  static std::optional<DeliveryMessage> Parse(ByteSpan bytes);  // nullopt: too short, or an unknown kind
  size_t Serialize(MutableByteSpan storage) const;              // kLength bytes
};

// The state of the receiving end. The Inbound half updates it; the Outbound half tells the peer.
struct DeliveryAccount {
  Delivery mode = Delivery::kPlain;
  bool plain_atomics = false;  // also if the mode is kPlain
  uint8_t timer = 0;           // the delay to ask for if there is no receive
  uint32_t received = 0;       // number of the last request that was carried out or accepted
  uint32_t acknowledged = 0;   // the last of these of which the peer was told
  bool wanted = false;         // the peer waits for an acknowledgement
  bool refused = false;        // kNotReady is to be sent
  bool dropping = false;       // requests are dropped until the peer resumes
  ddp::Msn send_msn{1}, read_msn{1};  // at the time of the refusal
  // Increases with each byte and message that shows that the peer is working on our requests.
  uint64_t answers = 0;
  bool targeted = false;       // requests name a target
  uint32_t target = 0;         // ... that was named last; 0: none
  bool target_selected = false;  // the host has been told (Host::SelectTarget)
  // A copy of `received` that the peer can read if this process ends before it has told the peer. nullptr: there is
  // none.
  std::atomic<uint32_t>* shown = nullptr;

  // Request `number` is carried out. To be called before the program can learn of it, since the process may end right
  // after.
  void Show(uint32_t number) {
    if (shown != nullptr) shown->store(number, std::memory_order_release);
  }

  bool extended() const { return mode != Delivery::kPlain; }
  bool has(Streams streams) const { return streams == Streams::kAll || extended() || (streams == Streams::kWithAtomics && plain_atomics); }
  bool reliable() const { return mode == Delivery::kReliable; }
  uint32_t owed() const { return received - acknowledged; }
};

}  // namespace weft::rdmap

#endif  // RDMAP_DELIVERY_H_
