#include "rdmap/termination.h"

#include <algorithm>
#include <cstring>

#include "rdmap/opcode.h"

namespace weft::rdmap {

void Termination::Fail(const TerminateMessage& why) {
  if (!operational()) return;
  state_ = StreamState::kTerminating;
  message_ = why;
}

void Termination::OnPeerTerminate(const TerminateMessage& why) {
  if (!operational()) return;
  state_ = StreamState::kTerminated;
  message_ = why;
}

void OffendingSegment::Capture(size_t ulpdu_length, ByteSpan head) {
  length = static_cast<uint32_t>(ulpdu_length);
  if (head.size() >= header.size()) {
    kept = header.size();
    std::memcpy(header.data(), head.data(), header.size());
  } else {
    kept = static_cast<uint8_t>(head.size());
    std::ranges::copy(head, header.begin());
  }
}

void OffendingSegment::QuoteIn(TerminateMessage& message) const {
  if (kept == 0) return;
  const bool tagged = ddp::ControlField::Parse(header[0]).tagged;
  const size_t header_length = tagged ? ddp::TaggedHeader::kLength : ddp::UntaggedHeader::kLength;
  if (kept < header_length) return;  // "Yes, if possible"
  message.ddp_segment_length = static_cast<uint16_t>(std::min<uint32_t>(length, UINT16_MAX));  // what its field can say
  std::copy_n(header.begin(), header_length, message.ddp_header.begin());
  message.ddp_header_length = static_cast<uint8_t>(header_length);
}

TerminateMessage Explain(ddp::Error error, const OffendingSegment& segment) {
  TerminateMessage message;
  message.layer = TerminateLayer::kDdp;
  message.error_type = ddp::ErrorType(error);
  message.error_code = ddp::ErrorCode(error);
  segment.QuoteIn(message);
  return message;
}

TerminateMessage Explain(Error error) {
  TerminateMessage message;
  message.layer = TerminateLayer::kRdmap;
  message.error_type = ErrorType(error);
  message.error_code = ErrorCode(error);
  return message;
}

TerminateMessage Explain(Error error, const OffendingSegment& segment) {
  TerminateMessage message = Explain(error);
  segment.QuoteIn(message);
  return message;
}

TerminateMessage Explain(llp::Error error) {
  TerminateMessage message;
  message.layer = TerminateLayer::kLlp;
  // An ULPDU length that cannot be is, like a marker that disagrees, a lost start of FPDU.
  message.error_code = error == llp::Error::kDamaged ? 2 : 3;
  return message;
}

TerminateMessage Explain(Error error, const InboundRead& read, uint32_t done) {
  TerminateMessage message = Explain(error);
  ddp::UntaggedHeader segment;
  segment.last = true;
  segment.rsvd_ulp = ControlByteOf(Opcode::kReadRequest);
  segment.queue = kReadRequestQueue;
  segment.msn = read.msn;
  message.ddp_segment_length = ddp::UntaggedHeader::kLength + ReadRequestHeader::kLength;
  message.ddp_header_length = static_cast<uint8_t>(segment.Serialize(message.ddp_header));

  ReadRequestHeader rest = read.header;
  rest.sink_offset = ddp::TaggedOffset(rest.sink_offset.value + done);
  rest.source_offset = ddp::TaggedOffset(rest.source_offset.value + done);
  rest.length -= done;
  rest.Serialize(message.read_header);
  message.has_read_header = true;
  return message;
}

ddp::Error PlacementError(AccessError error) {
  switch (error) {
    case AccessError::kInvalidStag:
    case AccessError::kAccessRights:
    case AccessError::kMisaligned:  // only atomics have to be aligned
      return ddp::Error::kInvalidStag;
    case AccessError::kBounds:
      return ddp::Error::kBaseOrBounds;
    case AccessError::kStagNotAssociated:
      return ddp::Error::kStagNotAssociated;
    case AccessError::kOffsetWrap:
      return ddp::Error::kOffsetWrap;
  }
  return ddp::Error::kInvalidStag;
}

Error ReadError(AccessError error) {
  switch (error) {
    case AccessError::kInvalidStag:
      return Error::kInvalidStag;
    case AccessError::kBounds:
      return Error::kBaseOrBounds;
    case AccessError::kAccessRights:
      return Error::kAccessRights;
    case AccessError::kStagNotAssociated:
      return Error::kStagNotAssociated;
    case AccessError::kOffsetWrap:
      return Error::kOffsetWrap;
    case AccessError::kMisaligned:
      return Error::kCatastrophicStream;  // RFC 7306 section 8.2
  }
  return Error::kUnspecifiedProtection;
}

Error InvalidateError(AccessError error) {
  // RFC 5040 section 7.2 has the STag valid, section 5.3 associated with the stream.
  return error == AccessError::kInvalidStag ? Error::kInvalidStag : Error::kCannotInvalidate;
}

}  // namespace weft::rdmap
