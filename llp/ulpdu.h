#ifndef LLP_ULPDU_H_
#define LLP_ULPDU_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/byte_reader.h"

namespace weft::llp {

// A ULPDU is one DDP segment (RFC 5044 section 2). These two interfaces separate DDP from the layer below it (RFC 5041
// section 5). MPA implements them over a byte stream, other wires over messages.

// The longest DDP/RDMAP header that a sink needs before it can tell where the payload goes, in bytes. An untagged
// header (18) with an RDMAP Atomic Request (RFC 7306 section 5.2.1: 52) fits.
inline constexpr size_t kUlpduHeadLength = 72;
// Of most segments it needs less: of a tagged one, whose first bit is 1 (RFC 5041 section 4.2), and of an untagged one
// of queue 0, Sends (section 4.3), the payload begins here.
inline constexpr size_t kTaggedHeadLength = 14, kSendHeadLength = 18;
// How many bytes a sink needs of a ULPDU that begins with these, as far as they tell.
inline size_t HeadLength(ByteSpan begin) {
  if (begin.empty() || (begin[0] & 0x80) != 0) return kTaggedHeadLength;
  if (begin.size() < kSendHeadLength) return kSendHeadLength;
  return (begin[6] | begin[7] | begin[8] | begin[9]) == 0 ? kSendHeadLength : kUlpduHeadLength;
}

// The longest ULPDU, in bytes. On a byte or message stream its own length field limits it to 65535. In shared memory,
// one ULPDU holds 64 KiB of payload and its header.
inline constexpr size_t kLongestUlpdu = 64 * 1024 + 24;

// Where to place the bytes of a ULPDU that follow its header.
struct UlpduPlan {
  size_t header_length = 0;        // length of the header at the front of the ULPDU, at most `head.size()`
  std::span<const iovec> payload;  // exactly (ULPDU length - header_length) bytes; stays valid until End()
  bool ours = false;               // `payload` is memory of Weft, not of the program: it cannot be unmapped
  // Set by the wire: the peer has already placed the payload, in a buffer that was open to it (UlpduSink::OpenBuffer).
  bool placed = false;
  // Set by the wire: the peer has carried out so many more of our requests (see UlpduWriter::AppendAcknowledging()).
  uint8_t acknowledged = 0;
  bool discard = false;            // drop the payload and ignore `payload`; End() is still called
  // Nobody learns of this ULPDU before a later one, or before the wire returns. The wire may call End() first and place
  // the payload then, together with that of other such ULPDUs; see UlpduSink::OnUnplaced().
  bool deferrable = false;
};

// The effect of a ULPDU that only places its payload: the offset in the buffer with this tag (an STag and a TO, RFC
// 5041 section 4.2).
struct TaggedPlacement {
  uint32_t tag = 0;
  uint64_t offset = 0;
  // For a ULPDU that is being sent. `awaited`: the program waits until it is carried out. `answered`: the peer must
  // also confirm it, even if it is already placed.
  bool awaited = false, answered = false;
};

// A buffer that a peer may access: `length` bytes at `memory`, which begin at tagged offset `offset`.
struct TaggedBuffer {
  uint32_t tag = 0;
  uint64_t offset = 0;
  uint8_t* memory = nullptr;
  uint64_t length = 0;
  bool writable = false, readable = false;  // by the peer
};

// Receives ULPDUs, in stream order. Begin and End alternate. With CRC, Begin is called only after the whole ULPDU was
// verified. Without CRC, bytes may be placed as they arrive, between Begin and End.
class UlpduSink {
 public:
  virtual ~UlpduSink() = default;

  // `length`: length of the ULPDU in bytes, 1 to kLongestUlpdu. `head`: its first bytes, valid during the call: at
  // least as many as HeadLength() says, or all, and at most kUlpduHeadLength. Returns false if nothing more may be
  // received on this stream (the sink knows why).
  virtual bool Begin(size_t length, ByteSpan head, UlpduPlan* plan) = 0;

  // The payload is in place. Returns false for the same reason as Begin().
  virtual bool End() = 0;

  // Called between Begin() and End() if memory that the plan names is no longer mapped, because the program has
  // unmapped it. The rest of the payload is dropped; End() still follows.
  virtual void OnUnplaceable() {}

  // The payload of ULPDUs was to be placed after End() (UlpduPlan::deferrable), and memory that one of them names is no
  // longer mapped. Called for each that was ended and is not placed, from the last one back to that one (`gone`).
  // `length`, `head`: as for Begin(). Nothing more is received.
  virtual void OnUnplaced(size_t /*length*/, ByteSpan /*head*/, bool /*gone*/) {}

  // The wire has handed on everything up to that position (Channel::consumed() says so from then on). Called between
  // ULPDUs, by wires that learn this from the peer, and before a later message of the peer is handed on.
  virtual void OnTransmitted(uint64_t /*position*/) {}

  // For wires on which one end can access the other's memory. nullopt: a ULPDU with that header does more than place
  // its payload, or does not place any.
  virtual std::optional<TaggedPlacement> PlacementOf(ByteSpan /*header*/) const { return std::nullopt; }
  // False: for the programs it makes no difference if the payload of a later ULPDU is placed before a ULPDU with that
  // header is received.
  virtual bool TouchesMemory(ByteSpan /*header*/) const { return true; }
  // The tag of our buffer that the ULPDU with that header, the last one received, reads or writes. nullopt: none, or
  // the ULPDU does more than that.
  virtual std::optional<uint32_t> ReachedTag(ByteSpan /*header*/) const { return std::nullopt; }
  // The whole buffer with this tag, if the peer may access it now. The answer is valid until Channel::TakeOver() or
  // Channel::Shut().
  virtual std::optional<TaggedBuffer> OpenBuffer(uint32_t /*tag*/) { return std::nullopt; }
};

// Takes ULPDUs for transmission.
class UlpduWriter {
 public:
  virtual ~UlpduWriter() = default;

  // The longest ULPDU in bytes, header and payload together (MULPDU of RFC 5041).
  virtual size_t max_ulpdu() const = 0;

  // Whether a ULPDU with `payload_length` bytes of payload can be appended now.
  virtual bool HasRoom(size_t payload_length, size_t payload_pieces) const = 0;

  // Appends one ULPDU of header.size() + sum(payload) <= max_ulpdu() bytes. Call only after HasRoom(). The header is
  // copied. The payload is copied at once if `volatile_payload` is set. Otherwise it may be referenced until the stream
  // position after it is consumed, or until TakeOver() of the channel. What is short, and what the framing (CRC,
  // markers) changes, is copied before, by a thread of Weft not before the next write.
  virtual void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) = 0;

  // Some wires carry an acknowledgement together with a ULPDU, which saves a ULPDU of its own: `acknowledged` (not 0)
  // more requests of the peer were carried out before this one. Allowed only if CarriesAcknowledgements(), which may
  // change after each ULPDU.
  virtual bool CarriesAcknowledgements() const { return false; }
  virtual void AppendAcknowledging(ByteSpan header, std::span<const iovec> payload, bool volatile_payload, uint8_t /*acknowledged*/) {
    Append(header, payload, volatile_payload);
  }

  // The payload of the last appended ULPDU is in the peer's memory, and so is everything before it.
  virtual bool placed() const { return false; }

  // Copies `length` bytes of a buffer of the peer, from `offset` on, to `to`, on wires where this end can read the
  // peer's memory itself. `alone`: no other Fetch() is known to follow at once. Returns false, and the peer must be
  // asked, if the wire cannot do it, if the peer has not received everything that was appended before, or if an answer
  // of the peer would be faster.
  virtual bool Fetch(uint32_t /*tag*/, uint64_t /*offset*/, std::span<const iovec> /*to*/, size_t /*length*/, bool /*alone*/) { return false; }

  // Stream position after the last appended ULPDU; it grows without bound.
  virtual uint64_t appended() const = 0;
};

}  // namespace weft::llp

#endif  // LLP_ULPDU_H_
