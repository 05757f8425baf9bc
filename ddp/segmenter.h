#ifndef DDP_SEGMENTER_H_
#define DDP_SEGMENTER_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ddp/header.h"
#include "llp/ulpdu.h"

namespace weft::ddp {

// Walks through a gather list. A value type: copy it to look ahead.
class IovecCursor {
 public:
  IovecCursor() = default;
  explicit IovecCursor(std::span<const iovec> list) : list_(list) {}

  // Returns the next bytes, at most `length`, as pieces in `out`, without empty pieces. The result is the number of
  // bytes; it is smaller if `out` is full or the list ends. Sets `*pieces` to the number of pieces.
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
  size_t offset_ = 0;  // within the first piece of list_
};

// Cuts messages, one after the other, into segments that the lower layer accepts (RFC 5041 section 5.2). Allocates
// nothing and does not copy the payload.
class Segmenter {
 public:
  // Maximum number of pieces of one segment's payload. A gather list with many small pieces makes shorter segments.
  static constexpr size_t kMaxPieces = 64;

  enum class Progress : uint8_t { kNoRoom, kAppended, kMessageDone };

  // Begins a message; the one before must be complete or abandoned. `header` is the header of the first segment; its
  // last flag is set here. `payload` has `length` bytes. It and its memory stay valid until the message is complete.
  void Start(const TaggedHeader& header, std::span<const iovec> payload, uint32_t length, bool volatile_payload);
  void Start(const UntaggedHeader& header, std::span<const iovec> payload, uint32_t length, bool volatile_payload);

  // The bytes not yet sent are at another place from now on. `volatile_payload`: those that are not in a segment when
  // the owner's turn ends will be replaced again.
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
  TaggedHeader tagged_;  // of the next segment; one of the two is used
  UntaggedHeader untagged_;
  IovecCursor payload_;
};

}  // namespace weft::ddp

#endif  // DDP_SEGMENTER_H_
