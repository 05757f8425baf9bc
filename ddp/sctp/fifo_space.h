#ifndef DDP_SCTP_FIFO_SPACE_H_
#define DDP_SCTP_FIFO_SPACE_H_

#include <cstddef>

#include "base/check.h"

namespace weft::ddp::sctp {

// Allocates contiguous ranges of [0, capacity), which are released in the order of allocation. Handles numbers only;
// the owner decides what they count.
class FifoSpace {
 public:
  explicit FifoSpace(size_t capacity) : capacity_(capacity) {}

  bool Fits(size_t count) const {
    if (taken_ == 0) return count <= capacity_;
    if (wrapped_) return tail_ - head_ >= count;
    return capacity_ - head_ >= count || tail_ >= count;
  }

  // Returns the start of a range of `count` units, at least 1. Call only if they fit.
  size_t Take(size_t count) {
    WEFT_CHECK(count != 0 && Fits(count));
    if (taken_ == 0) {
      head_ = tail_ = 0;
      wrapped_ = false;
    } else if (!wrapped_ && capacity_ - head_ < count) {
      head_ = 0;
      wrapped_ = true;
    }
    const size_t at = head_;
    head_ += count;
    ++taken_;
    return at;
  }

  // Releases the oldest range that Take() returned, as a whole.
  void Release(size_t at, size_t count) {
    WEFT_CHECK(taken_ != 0);
    if (at < tail_) wrapped_ = false;  // all ranges from before the wrap are released
    tail_ = at + count;
    --taken_;
  }

  void Clear() { taken_ = 0; }

 private:
  const size_t capacity_;
  size_t head_ = 0, tail_ = 0;
  size_t taken_ = 0;  // ranges
  bool wrapped_ = false;
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_FIFO_SPACE_H_
