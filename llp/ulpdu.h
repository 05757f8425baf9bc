#ifndef LLP_ULPDU_H_
#define LLP_ULPDU_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/byte_reader.h"

namespace weft::llp {

// A ULPDU is one DDP segment (RFC 5044 section 2). These two interfaces are the seam between DDP and the layer below
// it (RFC 5041 section 5): MPA implements them over a byte stream, others over messages.

// The longest DDP/RDMAP header that a sink needs to see before it can say where the payload goes: an untagged header
// (18) and an RDMAP Atomic Request (RFC 7306 section 5.2.1: 52) fit.
inline constexpr size_t kUlpduHeadLength = 72;

// The longest ULPDU, in bytes. A byte stream's, or a message's, has at most 65535, which its own length field can say; in memory 64 KiB of payload
// and their header are one.
inline constexpr size_t kLongestUlpdu = 64 * 1024 + 24;

// Where the bytes of a ULPDU that follow its header are to be placed.
struct UlpduPlan {
  size_t header_length = 0;        // bytes at the front of the ULPDU that are header, at most `head.size()`
  std::span<const iovec> payload;  // exactly (ULPDU length - header_length) bytes; stays valid until End()
  bool ours = false;               // `payload` is memory of Weft's, not the program's: it cannot be gone
  bool placed = false;             // set by the wire: the peer has placed the payload, in a buffer that was open to it then (UlpduSink::OpenBuffer)
  uint8_t acknowledged = 0;        // set by the wire: so many more of our requests the peer has carried out, as UlpduWriter::AppendAcknowledging() says
  bool discard = false;            // the payload is dropped, `payload` not looked at; End() follows all the same
};

// What a ULPDU does that only places its payload: at which offset of the buffer that has this tag (an STag and a TO, RFC 5041 section 4.2).
struct TaggedPlacement {
  uint32_t tag = 0;
  uint64_t offset = 0;
  // Of one that is being sent: somebody waits for it to be carried out; and for the peer to say so, even if it is placed already.
  bool awaited = false, answered = false;
};

// A buffer that a peer may reach: its `length` bytes at `memory` begin at tagged offset `offset`.
struct TaggedBuffer {
  uint32_t tag = 0;
  uint64_t offset = 0;
  uint8_t* memory = nullptr;
  uint64_t length = 0;
  bool writable = false, readable = false;  // by the peer
};

// Receives ULPDUs, in stream order. Begin and End alternate. With CRC on, Begin is called only after the whole ULPDU was
// verified; with CRC off, bytes may be placed while they arrive, between Begin and End.
class UlpduSink {
 public:
  virtual ~UlpduSink() = default;

  // `length`: the ULPDU's length in bytes, 1 to kLongestUlpdu. `head`: its first min(length, kUlpduHeadLength) bytes, valid
  // during the call. Returns false when nothing more may be received on this stream (the sink knows why).
  virtual bool Begin(size_t length, ByteSpan head, UlpduPlan* plan) = 0;

  // The payload is in place. Returns false as above.
  virtual bool End() = 0;

  // Instead of that, between Begin() and End(), which follows all the same: memory that the plan names is not there any more, since the program has unmapped
  // it. The rest of the payload is dropped.
  virtual void OnUnplaceable() {}

  // What was appended up to that position is out of the wire's hands (as Channel::consumed() says from then on). Between ULPDUs, by wires that
  // learn that from the peer: before what the peer did next is handed on.
  virtual void OnTransmitted(uint64_t /*position*/) {}

  // For wires on which one end can reach into the other's memory. nullopt: a ULPDU with that header does more than place its payload, or is none
  // of the kind.
  virtual std::optional<TaggedPlacement> PlacementOf(ByteSpan /*header*/) const { return std::nullopt; }
  // False: no program finds anything else in its memory if a later ULPDU places its payload before one with that header is taken.
  virtual bool TouchesMemory(ByteSpan /*header*/) const { return true; }
  // The buffer of ours that the ULPDU with that header, which was taken last, reads or places in; nullopt: none, or it does more than that.
  virtual std::optional<uint32_t> ReachedTag(ByteSpan /*header*/) const { return std::nullopt; }
  // The whole buffer that has this tag, if the peer may reach it now: until Channel::TakeOver() or Channel::Shut() says that it may not.
  virtual std::optional<TaggedBuffer> OpenBuffer(uint32_t /*tag*/) { return std::nullopt; }
};

// Takes ULPDUs for transmission.
class UlpduWriter {
 public:
  virtual ~UlpduWriter() = default;

  // The most bytes of one ULPDU (MULPDU of RFC 5041), header and payload together.
  virtual size_t max_ulpdu() const = 0;

  // Whether a ULPDU with `payload_length` bytes of payload can be appended now.
  virtual bool HasRoom(size_t payload_length, size_t payload_pieces) const = 0;

  // Appends one ULPDU, header.size() + sum(payload) <= max_ulpdu(). Only after HasRoom. The header is copied. The
  // payload is referenced until the stream position after it was consumed, or copied at once when `volatile_payload` is
  // set, when it is short, or when the framing (CRC, markers) needs it.
  virtual void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) = 0;

  // What stands beside a ULPDU on some wires, and saves one of its own: `acknowledged` (not 0) more requests of the peer were carried out before. Only if
  // CarriesAcknowledgements() says so, which may change after each ULPDU.
  virtual bool CarriesAcknowledgements() const { return false; }
  virtual void AppendAcknowledging(ByteSpan header, std::span<const iovec> payload, bool volatile_payload, uint8_t /*acknowledged*/) {
    Append(header, payload, volatile_payload);
  }

  // The payload of the ULPDU that was appended last is in the peer's memory, and so is all before it.
  virtual bool placed() const { return false; }

  // Copies `length` bytes of a buffer of the peer's, from `offset` on, to `to`, where this end can reach them without the peer's help; nothing that was
  // appended is to come before. `alone`: others do not follow at once, as far as that is known. False: it cannot, or has others do it sooner, and the peer
  // is to be asked.
  virtual bool Fetch(uint32_t /*tag*/, uint64_t /*offset*/, std::span<const iovec> /*to*/, size_t /*length*/, bool /*alone*/) { return false; }

  // Position in the byte stream after the last appended ULPDU; grows without bound.
  virtual uint64_t appended() const = 0;
};

}  // namespace weft::llp

#endif  // LLP_ULPDU_H_
