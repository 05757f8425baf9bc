#include "ddp/untagged_queue.h"

namespace weft::ddp {

std::optional<Error> UntaggedQueue::CheckPosition(const UntaggedHeader& header) const {
  if (header.msn != next_) return Error::kMsnRange;
  if (header.message_offset != offset_) return Error::kInvalidMessageOffset;
  return std::nullopt;
}

std::optional<Error> UntaggedQueue::CheckRoom(uint64_t length, uint64_t capacity) const {
  const uint64_t end = offset_ + length;
  if (end > capacity || end > UINT32_MAX) return Error::kMessageTooLong;
  return std::nullopt;
}

void UntaggedQueue::Advance(uint32_t length, bool last) {
  open_ = !last;
  if (last) {
    offset_ = 0;
    next_ = Msn(next_.value + 1);  // wraps to 0, RFC 5041 section 4.3
  } else {
    offset_ += length;
  }
}

}  // namespace weft::ddp
