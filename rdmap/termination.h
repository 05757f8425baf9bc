#ifndef RDMAP_TERMINATION_H_
#define RDMAP_TERMINATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"
#include "ddp/error.h"
#include "ddp/header.h"
#include "llp/stream.h"
#include "rdmap/error.h"
#include "rdmap/host.h"
#include "rdmap/read_queues.h"
#include "rdmap/stream_state.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

// Whether a stream is alive, and what ended it. The first error wins (RFC 5040 section 7.1, rule 4).
class Termination {
 public:
  StreamState state() const { return state_; }
  bool operational() const { return state_ == StreamState::kOperational; }
  bool by_peer() const { return state_ == StreamState::kTerminated; }
  const std::optional<TerminateMessage>& message() const { return message_; }

  // This end ends the stream: `why` must be sent.
  void Fail(const TerminateMessage& why);
  // The peer ended it.
  void OnPeerTerminate(const TerminateMessage& why);

 private:
  StreamState state_ = StreamState::kOperational;
  std::optional<TerminateMessage> message_;
};

// The last segment received, kept to be quoted in a Terminate.
struct OffendingSegment {
  void Capture(size_t ulpdu_length, ByteSpan head);
  void QuoteIn(TerminateMessage& message) const;

  uint32_t length = 0;  // of the segment
  uint8_t kept = 0;     // bytes in `header`
  std::array<uint8_t, ddp::kMaxHeaderLength> header{};
};

// Builds Terminate messages as in figures 9 and 10 of RFC 5040 section 4.8.
TerminateMessage Explain(ddp::Error error, const OffendingSegment& segment);
TerminateMessage Explain(Error error, const OffendingSegment& segment);
TerminateMessage Explain(Error error);           // no segment of the peer caused it
TerminateMessage Explain(llp::Error error);  // RFC 5044 section 8
// For a Read Request whose error is found after `done` bytes of its response were sent; its segment is rebuilt.
TerminateMessage Explain(Error error, const InboundRead& read, uint32_t done);

// The host's refusals as errors on the wire. Placement has no code for missing access rights: an STag without the right
// is invalid for the purpose (RFC 5041 section 7.1, tagged check 1).
ddp::Error PlacementError(AccessError error);
Error ReadError(AccessError error);
Error InvalidateError(AccessError error);

}  // namespace weft::rdmap

#endif  // RDMAP_TERMINATION_H_
