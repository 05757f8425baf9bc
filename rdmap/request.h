#ifndef RDMAP_REQUEST_H_
#define RDMAP_REQUEST_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ddp/types.h"

namespace weft::rdmap {

// RDMAP opcodes as on the wire, RFC 5040 section 4.3 (4 bits). Values above kTerminate are RFC 7306.
enum class Opcode : uint8_t {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSolicited = 5,
  kSendSolicitedInvalidate = 6,
  kTerminate = 7,
};

// One work request on its way through a stream. Owned by the RNIC's send queue; it and the memory that `local` points
// at stay put until the stream reports it done.
struct Request {
  Opcode opcode = Opcode::kSend;    // kWrite, kReadRequest, or one of the Sends
  bool fence = false;               // wait for all earlier Reads first
  bool volatile_local = false;      // `local` may change after Transmit (inline data): copy at once
  uint32_t length = 0;              // bytes of `local`
  std::span<const iovec> local;     // source; for a Read the sink
  ddp::STag remote_stag;            // Write, Read
  ddp::TaggedOffset remote_offset;  // Write, Read
  ddp::STag invalidate_stag;        // Send with Invalidate: the peer's STag
  ddp::STag sink_stag;              // Read: how the peer names our sink on the wire
  ddp::TaggedOffset sink_offset;

  // The stream's own notes.
  uint64_t end_position = 0;  // stream position after its last byte, once wholly appended
  Request* next = nullptr;    // the one started after it, while both wait for Sent()
};

}  // namespace weft::rdmap

#endif  // RDMAP_REQUEST_H_
