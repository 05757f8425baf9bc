#ifndef RDMAP_DELIVERY_H_
#define RDMAP_DELIVERY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"
#include "ddp/types.h"

// What an extended stream adds between two Weft ends, so that the InfiniBand semantics that verbs programs know hold: a request is
// complete when the peer has carried it out, and one that finds no posted receive waits.
//
// Each end numbers the request messages that it sends: Writes, Sends, Immediate Data, Read and Atomic Requests, from 1 on, modulo
// 2^32, as they follow each other on the stream. The other end acknowledges them. When it has no receive for one it refuses that
// one and drops all requests behind it, until the sender, some time later, says that it starts again from there; responses and
// acknowledgements go on meanwhile.
//
// A targeted stream (the verbs' extended reliable connection, XRC) has requests for several receivers behind one stream, each with its
// own receives and memory: before a request whose target is not that of the one before, the sender names it.
namespace weft::rdmap {

// How an end treats the requests of its peer; both agree on it (llp/handshake.h).
enum class Delivery : uint8_t {
  kPlain,       // as RFC 5040 has it, nothing is added
  kReliable,    // acknowledged; without a receive the peer waits
  kUnreliable,  // not acknowledged; what cannot be placed is dropped (the verbs' unreliable connection)
};

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |      Kind     |     Timer     |             Zero              |
// |                            Sequence                           |
// |               MSN of the next message on QN 0                 |
// |               MSN of the next message on QN 1                 |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// The payload of opcode 15 on QN 4, one segment; its own MSN is zero, for it may stand between the segments of other messages.
struct DeliveryMessage {
  static constexpr size_t kLength = 16;

  enum class Kind : uint8_t {
    kAcknowledge = 0,  // all requests up to `sequence` were carried out (Reads and atomics: accepted)
    kNotReady = 1,     // that, and number `sequence + 1` found no receive: again after `timer`, with the MSNs below
    kResume = 2,       // the next request is number `sequence`
    kTarget = 3,       // targeted streams: the requests that follow are for target `sequence`
  };
  Kind kind = Kind::kAcknowledge;
  uint8_t timer = 0;  // kNotReady: min_rnr_timer of ibv_modify_qp(3), 0 to 31
  uint32_t sequence = 0;
  ddp::Msn send_msn, read_msn;  // kNotReady

  static std::optional<DeliveryMessage> Parse(ByteSpan bytes);  // nullopt: too short, or an unknown kind
  size_t Serialize(MutableByteSpan storage) const;              // kLength bytes
};

// The receiving end's account; the Inbound half writes it, the Outbound half tells the peer.
struct DeliveryAccount {
  Delivery mode = Delivery::kPlain;
  uint8_t timer = 0;           // to ask for when a receive is missing
  uint32_t received = 0;       // number of the last request that was carried out or accepted
  uint32_t acknowledged = 0;   // ... that the peer was told of
  bool wanted = false;         // the peer waits for an acknowledgement
  bool refused = false;        // kNotReady is to be sent
  bool dropping = false;       // requests are dropped until the peer resumes
  ddp::Msn send_msn{1}, read_msn{1};  // when it was refused
  uint64_t answers = 0;        // grows with each byte and message that says that the peer is at our requests
  bool targeted = false;       // requests name a target
  uint32_t target = 0;         // ... that was named last; 0: none was
  bool target_selected = false;  // the host knows (Host::SelectTarget)
  std::atomic<uint32_t>* shown = nullptr;  // where the peer finds `received` if this process ends before it can be told; null: nowhere

  // Request `number` is carried out. Before anybody here can know: the process may end with what it hears.
  void Show(uint32_t number) {
    if (shown != nullptr) shown->store(number, std::memory_order_release);
  }

  bool extended() const { return mode != Delivery::kPlain; }
  bool reliable() const { return mode == Delivery::kReliable; }
  uint32_t owed() const { return received - acknowledged; }
};

}  // namespace weft::rdmap

#endif  // RDMAP_DELIVERY_H_
