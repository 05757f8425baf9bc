#ifndef RDMAP_REQUEST_H_
#define RDMAP_REQUEST_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ddp/types.h"

namespace weft::rdmap {

// RDMAP opcodes as on the wire, RFC 5040 section 4.3 (4 bits). Values above kTerminate are RFC 7306's, the last one is Weft's own
// (rdmap/delivery.h); only extended streams have them.
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

// One work request on its way through a stream. Owned by the RNIC's send queue; it and the memory that `local` points
// at stay put until the stream reports it done.
struct Request {
  Opcode opcode = Opcode::kSend;    // kWrite, kReadRequest, kAtomicRequest, or one of the Sends
  bool fence = false;               // wait for all earlier Reads first
  bool volatile_local = false;      // `local` may change after Transmit (inline data): copy at once
  bool has_immediate = false;       // Send, or Write: then a receive of the peer is taken and told `immediate`
  bool solicited = false;           // Write with immediate data
  bool acknowledge = true;          // reliable streams: somebody waits to hear that it was carried out
  bool alone = false;               // Read: others do not follow at once, as far as that is known
  AtomicCode atomic_code = AtomicCode::kFetchAdd;
  uint32_t length = 0;              // bytes of `local`
  uint32_t immediate = 0;           // four bytes as the program laid them out
  std::span<const iovec> local;     // source; for a Read the sink, for an atomic eight bytes for what was there
  ddp::STag remote_stag;            // Write, Read, atomic
  ddp::TaggedOffset remote_offset;  // Write, Read, atomic
  uint64_t add_or_swap = 0, compare = 0;  // atomic
  ddp::STag invalidate_stag;        // Send with Invalidate: the peer's STag
  uint32_t target = 0;              // on a targeted stream of the peer: whom it is for; not 0
  ddp::STag sink_stag;              // Read: how the peer names our sink on the wire
  ddp::TaggedOffset sink_offset;

  // The stream's own notes.
  uint64_t end_position = 0;  // stream position after its last byte, once wholly appended
  uint32_t sequence = 0;      // extended streams: number of its last message
  bool write_done = false;    // Write with immediate data: only the latter is to be sent (again)
  Request* next = nullptr;    // the one started after it, while both wait for Sent()
};

}  // namespace weft::rdmap

#endif  // RDMAP_REQUEST_H_
