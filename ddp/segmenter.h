#ifndef DDP_SEGMENTER_H_
#define DDP_SEGMENTER_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ddp/header.h"
#include "llp/ulpdu.h"

namespace weft::ddp {

// Walks a gather list from front to back. A value: copy it to look ahead.
class IovecCursor {
 public:
  IovecCursor() = default;
  explicit IovecCursor(std::span<const iovec> list) : list_(list) {}

  // The next bytes, at most `length`, as pieces in `out`; empty pieces are left out. Returns how many bytes: fewer when
  // `out` is full or the list ends. `*pieces` is set to the number of pieces.
  size_t Take(size_t length, std::span<iovec> out, size_t* pieces) {
    if (length == 0 || list_.empty() || list_.front().iov_len - offset_ < length || out.empty()) return TakeSeveral(length, out, pieces);
    out[0] = {static_cast<uint8_t*>(list_.front().iov_base) + offset_, length};
    offset_ += length;
    *pieces = 1;
    return length;
  }

 private:
  size_t TakeSeveral(size_t length, std::span<iovec> out, size_t* pieces);

  std::span<const iovec> list_;
  size_t offset_ = 0;  // within the first of list_
};

// Cuts one message after the other into segments of what the lower layer takes (RFC 5041 section 5.2). Allocates
// nothing; the payload is not copied here.
class Segmenter {
 public:
  // Pieces of one segment's payload at most; a gather list in smaller crumbs makes shorter segments.
  static constexpr size_t kMaxPieces = 64;

  enum class Progress : uint8_t { kNoRoom, kAppended, kMessageDone };

  // A message begins; the one before is done or given up. `header` is the first segment's, its last flag is set here.
  // `payload` has `length` bytes, and with its memory stays valid until the message is done.
  void Start(const TaggedHeader& header, std::span<const iovec> payload, uint32_t length, bool volatile_payload);
  void Start(const UntaggedHeader& header, std::span<const iovec> payload, uint32_t length, bool volatile_payload);

  // The bytes not yet sent lie elsewhere from now on. `volatile_payload`: what of them is not in a segment when the owner's turn ends is replaced once more.
  void ReplacePayload(std::span<const iovec> rest, bool volatile_payload) {
    payload_ = IovecCursor(rest);
    volatile_ = volatile_payload;
  }

  // Appends the next segment if `out` has room. A zero-length message is one segment.
  Progress AppendTo(llp::UlpduWriter& out, uint8_t acknowledged = 0);

  bool active() const { return active_; }
  uint32_t remaining() const { return remaining_; }  // bytes of payload not yet in a segment
  void Abandon() { active_ = false; }

 private:
  void Begin(std::span<const iovec> payload, uint32_t length, bool volatile_payload);

  bool active_ = false;
  bool is_tagged_ = false;
  bool volatile_ = false;
  uint32_t remaining_ = 0;
  TaggedHeader tagged_;  // of the next segment, one of the two
  UntaggedHeader untagged_;
  IovecCursor payload_;
};

}  // namespace weft::ddp

#endif  // DDP_SEGMENTER_H_
