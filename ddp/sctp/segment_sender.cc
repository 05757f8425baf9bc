#include "ddp/sctp/segment_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/byte_writer.h"
#include "base/check.h"
#include "base/iovec_length.h"
#include "base/program_memory.h"
#include "ddp/sctp/chunk.h"

namespace weft::ddp::sctp {
namespace {

// Up to here a copy costs less than another piece in the gather list does.
constexpr size_t kShortPayload = 512;
// A payload in more pieces than this is copied.
constexpr size_t kMostReferencedPieces = SegmentSender::kMostMessagePieces - 1;
// A message that is copied whole fits into an empty block.
static_assert(kSsnLength + kLongestSegment <= BufferPool::kBlockSize);

// What is volatile is ours.
bool CopyPayload(uint8_t* to, const iovec& from, bool volatile_payload) {
  if (from.iov_len == 0) return true;
  if (!volatile_payload) return CopyFromProgram(to, from.iov_base, from.iov_len);
  std::memcpy(to, from.iov_base, from.iov_len);
  return true;
}

bool References(size_t payload_length, size_t payload_pieces) {
  return payload_pieces <= kMostReferencedPieces && payload_length > kShortPayload * payload_pieces;
}

}  // namespace

bool SegmentSender::HasRoom(size_t payload_length, size_t payload_pieces) const {
  // Whether the payload is volatile is not known here, so there has to be room for a copy.
  const size_t pieces = References(payload_length, payload_pieces) ? 1 + payload_pieces : 1;
  return count_ < kMostMessages && piece_space_.Fits(pieces) &&
         staging_space_.Fits(kSsnLength + llp::kUlpduHeadLength + payload_length);
}

bool SegmentSender::Append(uint16_t ssn, ByteSpan header, std::span<const iovec> payload, bool volatile_payload) {
  const size_t payload_length = TotalLength(payload);
  const bool references = !volatile_payload && References(payload_length, payload.size());
  WEFT_CHECK(count_ < kMostMessages && header.size() <= llp::kUlpduHeadLength);
  if (!staging_) staging_ = pool_.Take();

  Message message{.staged = kSsnLength + header.size() + (references ? 0 : payload_length),
                  .pieces = references ? 1 + payload.size() : 1,
                  .length = kSsnLength + header.size() + payload_length};
  message.staged_at = staging_space_.Take(message.staged);
  message.piece_at = piece_space_.Take(message.pieces);
  uint8_t* const staged = staging_.data() + message.staged_at;
  ByteWriter writer({staged, message.staged});
  writer.U16(ssn);
  writer.Bytes(header);
  iovec* piece = &pieces_[message.piece_at];
  *piece++ = {staged, message.staged};
  if (references) {
    std::copy(payload.begin(), payload.end(), piece);
  } else {
    uint8_t* at = staged + kSsnLength + header.size();
    for (const iovec& part : payload) {
      if (!CopyPayload(at, part, volatile_payload)) return false;
      at += part.iov_len;
    }
  }
  ++count_;
  at(count_ - 1) = message;
  return true;
}

std::span<const iovec> SegmentSender::Front() const {
  WEFT_CHECK(count_ != 0);
  return {&pieces_[messages_[first_].piece_at], messages_[first_].pieces};
}

void SegmentSender::Pop() {
  WEFT_CHECK(count_ != 0);
  const Message& message = messages_[first_];
  staging_space_.Release(message.staged_at, message.staged);
  piece_space_.Release(message.piece_at, message.pieces);
  first_ = (first_ + 1) % kMostMessages;
  if (!taken_over_.empty()) std::erase_if(taken_over_, [this](const Own& own) { return own.message == popped_; });
  ++popped_;
  if (--count_ == 0) Clear();
}

void SegmentSender::Clear() {
  count_ = 0;
  staging_space_.Clear();
  piece_space_.Clear();
  staging_.Reset();
  taken_over_.clear();
}

bool SegmentSender::IsTakenOver(const void* at) const {
  return std::any_of(taken_over_.begin(), taken_over_.end(), [at](const Own& own) { return own.bytes.data() == at; });
}

bool SegmentSender::TakeOver(const void* begin, size_t length, bool (*copy)(uint8_t*, const uint8_t*, size_t)) {
  bool well = true;
  const auto first = reinterpret_cast<uintptr_t>(begin);
  for (size_t index = 0; index < count_; ++index) {
    // The first piece is staged; the others are the program's, or were taken over before.
    const Message& message = at(index);
    for (iovec& piece : PayloadOf(message)) {
      const auto at = reinterpret_cast<uintptr_t>(piece.iov_base);
      const bool overlaps = at < first ? first - at < piece.iov_len : at - first < length;
      if (!overlaps || piece.iov_len == 0 || IsTakenOver(piece.iov_base)) continue;
      std::vector<uint8_t> own(piece.iov_len);
      well &= copy(own.data(), static_cast<const uint8_t*>(piece.iov_base), piece.iov_len);
      piece.iov_base = own.data();
      taken_over_.push_back({popped_ + index, std::move(own)});
    }
  }
  return well;
}

}  // namespace weft::ddp::sctp
