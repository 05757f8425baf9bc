#ifndef DDP_SCTP_FIFO_SPACE_H_
#define DDP_SCTP_FIFO_SPACE_H_

#include <cstddef>

#include "base/check.h"

namespace weft::ddp::sctp {

// Hands out stretches of [0, capacity), each in one piece, and gets them back in the order in which it gave them.
// Numbers only: what they count, and where it lies, is the owner's.
class FifoSpace {
 public:
  explicit FifoSpace(size_t capacity) : capacity_(capacity) {}

  bool Fits(size_t count) const {
    if (taken_ == 0) return count <= capacity_;
    if (wrapped_) return tail_ - head_ >= count;
    return capacity_ - head_ >= count || tail_ >= count;
  }

  // Where `count`, at least 1, begin. Only if they fit.
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

  // The oldest stretch that Take() gave, whole.
  void Release(size_t at, size_t count) {
    WEFT_CHECK(taken_ != 0);
    if (at < tail_) wrapped_ = false;  // what was given before the wrap is all back
    tail_ = at + count;
    --taken_;
  }

  void Clear() { taken_ = 0; }

 private:
  const size_t capacity_;
  size_t head_ = 0, tail_ = 0;
  size_t taken_ = 0;  // stretches
  bool wrapped_ = false;
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_FIFO_SPACE_H_
