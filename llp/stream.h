#ifndef LLP_STREAM_H_
#define LLP_STREAM_H_

#include <cstdint>

namespace weft::llp {

// What the lower layer found wrong with a stream, after which nothing more can be received.
enum class Error : uint8_t {
  kNone,
  kDamaged,    // bytes are not those that were sent (MPA: the CRC)
  kMisframed,  // where a ULPDU begins or ends is not to be told (MPA: a marker, a length)
};

// The message with which the initiator of a stream shows that it is ready, in peer-to-peer mode (RFC 6581 section 4): of zero length.
enum class Rtr : uint8_t { kNone, kSend, kWrite, kRead };

// What both ends of a new stream agreed on, from our point of view.
struct Outcome {
  uint16_t ird = 0, ord = 0;  // RDMA Reads that we take at once, and that we may have outstanding
  Rtr rtr = Rtr::kNone;       // what the initiator must send / the responder will get first
};

}  // namespace weft::llp

#endif  // LLP_STREAM_H_
