#include "ddp/sctp/chunk.h"

#include <algorithm>
#include <cstdio>

#include "base/byte_writer.h"

namespace weft::ddp::sctp {
namespace {

// RFC 6581 section 7: Initiate, Accept and Reject with IRD and ORD have the plain function code and this.
constexpr uint16_t kEnhancedOffset = 4;
constexpr uint16_t kLastFunction = 7;

constexpr size_t kLeastMaxSegment = 516;
// A SACK with four gap blocks.
constexpr size_t kRoomForControlChunks = 32;

}  // namespace

Adaptation CheckAdaptation(std::optional<uint32_t> indication) {
  if (!indication) return Adaptation::kNone;
  return *indication == kAdaptationIndication ? Adaptation::kDdp : Adaptation::kOther;
}

const char* ToString(Adaptation adaptation) {
  switch (adaptation) {
    case Adaptation::kNone:
      return "no adaptation layer indication";
    case Adaptation::kDdp:
      return "DDP";
    case Adaptation::kOther:
      return "an adaptation layer indication that is not DDP's";
  }
  return "?";
}

const char* ToString(ChunkError error) {
  switch (error) {
    case ChunkError::kUnknownPpid:
      return "a payload protocol identifier that is neither 16 nor 17";
    case ChunkError::kTruncated:
      return "a message that is shorter than its header";
    case ChunkError::kEmptySegment:
      return "a DDP segment of no bytes";
    case ChunkError::kSegmentTooLong:
      return "a DDP segment of more than 65535 bytes";
    case ChunkError::kUnknownFunction:
      return "an unknown function code";
    case ChunkError::kPrivateDataTooLong:
      return "more than 512 bytes of private data";
    case ChunkError::kPrivateDataInTerminate:
      return "private data in a Terminate";
    case ChunkError::kTruncatedReads:
      return "an enhanced message without IRD and ORD";
  }
  return "?";
}

const char* ToString(Chunk::Kind kind) {
  switch (kind) {
    case Chunk::Kind::kSegment:
      return "Segment";
    case Chunk::Kind::kInitiate:
      return "Initiate";
    case Chunk::Kind::kAccept:
      return "Accept";
    case Chunk::Kind::kReject:
      return "Reject";
    case Chunk::Kind::kTerminate:
      return "Terminate";
  }
  return "?";
}

Result<Chunk, ChunkError> Chunk::Parse(uint32_t ppid, ByteSpan message) {
  if (ppid != kSegmentPpid && ppid != kControlPpid) return ChunkError::kUnknownPpid;
  ByteReader reader(message);
  if (reader.remaining() < (ppid == kSegmentPpid ? kSsnLength : kControlHeaderLength)) return ChunkError::kTruncated;
  Chunk chunk{.ssn = reader.U16()};
  if (ppid == kSegmentPpid) {
    if (reader.remaining() == 0) return ChunkError::kEmptySegment;
    if (reader.remaining() > kLongestSegment) return ChunkError::kSegmentTooLong;
    chunk.body = reader.Rest();
    return chunk;
  }
  uint16_t function = reader.U16();
  if (function == 0 || function > kLastFunction) return ChunkError::kUnknownFunction;
  chunk.enhanced = function > kEnhancedOffset;
  if (chunk.enhanced) function = static_cast<uint16_t>(function - kEnhancedOffset);
  chunk.kind = static_cast<Kind>(function);
  chunk.body = reader.Rest();
  if (chunk.body.size() > kMaxPrivateData) return ChunkError::kPrivateDataTooLong;
  if (chunk.kind == Kind::kTerminate && !chunk.body.empty()) return ChunkError::kPrivateDataInTerminate;
  if (chunk.enhanced && chunk.kind != Kind::kReject && chunk.body.size() < kReadsLength)
    return ChunkError::kTruncatedReads;
  return chunk;
}

size_t Chunk::SerializeHeader(MutableByteSpan storage) const {
  ByteWriter writer(storage);
  writer.U16(ssn);
  if (kind != Kind::kSegment)
    writer.U16(static_cast<uint16_t>(static_cast<unsigned>(kind) + (enhanced ? kEnhancedOffset : 0)));
  return writer.size();
}

std::string Chunk::ToString() const {
  char text[96];
  std::snprintf(text, sizeof(text), "DDP%s %s SSN=%u %s=%zu", enhanced ? " Enhanced" : "", sctp::ToString(kind), ssn,
                kind == Kind::kSegment ? "segment" : "private data", body.size());
  return text;
}

size_t MaxSegment(size_t longest_message) {
  constexpr size_t kNotOurs = kSsnLength + kRoomForControlChunks;
  return std::clamp(longest_message - std::min(longest_message, kNotOurs), kLeastMaxSegment, kLongestSegment);
}

}  // namespace weft::ddp::sctp
