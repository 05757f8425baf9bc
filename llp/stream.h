#ifndef LLP_STREAM_H_
#define LLP_STREAM_H_

#include <cstdint>

namespace weft::llp {

// An error of a stream that the lower layer found. Nothing more can be received after it.
enum class Error : uint8_t {
  kNone,
  kDamaged,    // bytes differ from those that were sent (MPA: the CRC)
  kMisframed,  // the start or the end of a ULPDU cannot be found (MPA: a marker, a length)
};

// The message of zero length with which the initiator of a stream in peer-to-peer mode shows that it is ready (RFC 6581
// section 4).
enum class Rtr : uint8_t { kNone, kSend, kWrite, kRead };

// What both ends of a new stream agreed on, as seen from this end.
struct Outcome {
  uint16_t ird = 0, ord = 0;  // RDMA Reads that we accept at once, and that we may have outstanding
  Rtr rtr = Rtr::kNone;       // what the initiator must send first, and the responder receives first
};

}  // namespace weft::llp

#endif  // LLP_STREAM_H_
