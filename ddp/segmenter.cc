#include "ddp/segmenter.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace weft::ddp {

size_t IovecCursor::TakeSeveral(size_t length, std::span<iovec> out, size_t* pieces) {
  size_t taken = 0;
  size_t count = 0;
  while (taken < length && !list_.empty()) {
    const iovec& piece = list_.front();
    const size_t left = piece.iov_len - offset_;
    if (left == 0) {
      list_ = list_.subspan(1);
      offset_ = 0;
      continue;
    }
    if (count == out.size()) break;
    const size_t part = std::min(left, length - taken);
    out[count++] = {static_cast<uint8_t*>(piece.iov_base) + offset_, part};
    offset_ += part;
    taken += part;
  }
  *pieces = count;
  return taken;
}

void Segmenter::Begin(std::span<const iovec> payload, uint32_t length, bool volatile_payload) {
  payload_ = IovecCursor(payload);
  remaining_ = length;
  volatile_ = volatile_payload;
  active_ = true;
}

void Segmenter::Start(const TaggedHeader& header, std::span<const iovec> payload, uint32_t length,
                      bool volatile_payload) {
  is_tagged_ = true;
  tagged_ = header;
  Begin(payload, length, volatile_payload);
}

void Segmenter::Start(const UntaggedHeader& header, std::span<const iovec> payload, uint32_t length,
                      bool volatile_payload) {
  is_tagged_ = false;
  untagged_ = header;
  Begin(payload, length, volatile_payload);
}

Segmenter::Progress Segmenter::AppendTo(llp::UlpduWriter& out, uint8_t acknowledged) {
  WEFT_CHECK(active_);
  const size_t header_length = is_tagged_ ? TaggedHeader::kLength : UntaggedHeader::kLength;
  const size_t max_ulpdu = out.max_ulpdu();
  WEFT_CHECK(max_ulpdu > header_length);

  const size_t wanted = std::min<size_t>(remaining_, max_ulpdu - header_length);
  std::array<iovec, kMaxPieces> pieces;  // NOLINT: filled by Take
  size_t piece_count = 0;
  IovecCursor after = payload_;
  const size_t length = after.Take(wanted, pieces, &piece_count);
  WEFT_CHECK(length != 0 || wanted == 0);  // the gather list holds what was promised
  if (!out.HasRoom(length, piece_count)) return Progress::kNoRoom;

  const bool last = length == remaining_;
  std::array<uint8_t, kMaxHeaderLength> header;  // NOLINT: filled by Serialize
  if (is_tagged_) {
    tagged_.last = last;
    tagged_.Serialize(header);
    tagged_.offset = TaggedOffset(tagged_.offset.value + length);
  } else {
    untagged_.last = last;
    untagged_.Serialize(header);
    untagged_.message_offset += static_cast<uint32_t>(length);
  }
  const ByteSpan head = ByteSpan(header).first(header_length);
  const std::span<const iovec> payload = std::span<const iovec>(pieces).first(piece_count);
  if (acknowledged == 0) {
    out.Append(head, payload, volatile_);
  } else {
    out.AppendAcknowledging(head, payload, volatile_, acknowledged);
  }
  payload_ = after;
  remaining_ -= static_cast<uint32_t>(length);
  active_ = !last;
  return last ? Progress::kMessageDone : Progress::kAppended;
}

}  // namespace weft::ddp
