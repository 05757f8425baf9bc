#ifndef RDMAP_REQUEST_H_
#define RDMAP_REQUEST_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ddp/types.h"

namespace weft::rdmap {

// RDMAP opcodes as on the wire, RFC 5040 section 4.3 (4 bits). Values above kTerminate are those of RFC 7306; the last
// one is Weft's own (rdmap/delivery.h). Only extended streams use them.
enum class Opcode : uint8_t {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSolicited = 5,
  kSendSolicitedInvalidate = 6,
  kTerminate = 7,
  kImmediate = 8,
  kImmediateSolicited = 9,
  kAtomicRequest = 10,
  kAtomicResponse = 11,
  kDelivery = 15,
};

// AOpCode of RFC 7306 section 5.2.1 (4 bits).
enum class AtomicCode : uint8_t { kFetchAdd = 0, kCompareSwap = 2 };

// One work request on a stream. The RNIC's send queue owns it. The request and the memory of `local` must not move
// until the stream reports that it is done.
struct Request {
  Opcode opcode = Opcode::kSend;    // kWrite, kReadRequest, kAtomicRequest, or one of the Sends
  bool fence = false;               // wait for all earlier Reads first
  bool volatile_local = false;      // `local` may change after Transmit (inline data): copy at once
  bool has_immediate = false;       // Send, Write: consumes a receive of the peer and delivers `immediate` to it
  bool solicited = false;           // Write with immediate data
  bool acknowledge = true;          // reliable streams: the program waits until it is carried out
  bool alone = false;               // Read: no other Read is known to follow at once
  AtomicCode atomic_code = AtomicCode::kFetchAdd;
  uint32_t length = 0;              // bytes of `local`
  uint32_t immediate = 0;           // four bytes in the order of the program
  // The source. For a Read the sink; for an atomic operation eight bytes for the previous value.
  std::span<const iovec> local;
  ddp::STag remote_stag;            // Write, Read, atomic
  ddp::TaggedOffset remote_offset;  // Write, Read, atomic
  uint64_t add_or_swap = 0, compare = 0;  // atomic
  ddp::STag invalidate_stag;        // Send with Invalidate: the peer's STag
  uint32_t target = 0;              // on a targeted stream: the peer's target; not 0
  ddp::STag sink_stag;              // Read: how the peer names our sink on the wire
  ddp::TaggedOffset sink_offset;

  // State of the stream.
  uint64_t end_position = 0;  // stream position after its last byte, once it is completely appended
  uint32_t sequence = 0;      // extended streams: number of its last message
  bool write_done = false;    // Write with immediate data: only the immediate data is to be sent (again)
  Request* next = nullptr;    // the request started next, while both wait for Sent()
};

}  // namespace weft::rdmap

#endif  // RDMAP_REQUEST_H_
