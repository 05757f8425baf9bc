#include "rdmap/testing/segments.h"

#include <algorithm>

#include "base/check.h"

namespace weft::rdmap::testing {

Bytes Tagged(Opcode opcode, uint32_t stag, uint64_t offset, const Bytes& payload, bool last) {
  ddp::TaggedHeader header{last, ControlByteOf(opcode), ddp::STag(stag), ddp::TaggedOffset(offset)};
  Bytes segment(ddp::TaggedHeader::kLength);
  header.Serialize(segment);
  segment.insert(segment.end(), payload.begin(), payload.end());
  return segment;
}

Bytes Untagged(Opcode opcode, uint32_t msn, uint32_t message_offset, const Bytes& payload, bool last) {
  ddp::UntaggedHeader header;
  header.last = last;
  header.rsvd_ulp = ControlByteOf(opcode);
  header.queue = FindOpcode(opcode)->queue;
  header.msn = ddp::Msn(msn);
  header.message_offset = message_offset;
  Bytes segment(ddp::UntaggedHeader::kLength);
  header.Serialize(segment);
  segment.insert(segment.end(), payload.begin(), payload.end());
  return segment;
}

Bytes ReadRequest(uint32_t msn, const ReadRequestHeader& header) {
  Bytes payload(ReadRequestHeader::kLength);
  header.Serialize(payload);
  return Untagged(Opcode::kReadRequest, msn, 0, payload);
}

Bytes Pattern(size_t length, uint32_t seed) {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(seed * 37 + i * 7 + (i >> 8) + 1);
  return bytes;
}

bool Deliver(llp::UlpduSink& sink, const Bytes& segment, uint8_t acknowledged) {
  const std::vector<uint8_t> head(segment.begin(), segment.begin() + std::min(segment.size(), llp::kUlpduHeadLength));
  llp::UlpduPlan plan{.acknowledged = acknowledged};
  if (!sink.Begin(segment.size(), head, &plan)) return false;
  WEFT_CHECK(plan.header_length <= head.size());
  if (plan.discard) return sink.End();
  size_t at = plan.header_length;
  for (const iovec& piece : plan.payload) {
    WEFT_CHECK(piece.iov_len <= segment.size() - at);
    std::copy_n(segment.begin() + static_cast<ptrdiff_t>(at), piece.iov_len, static_cast<uint8_t*>(piece.iov_base));
    at += piece.iov_len;
  }
  WEFT_CHECK(at == segment.size());
  return sink.End();
}

}  // namespace weft::rdmap::testing
