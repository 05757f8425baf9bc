#ifndef CM_RSOCKET_VECTOR_CURSOR_H_
#define CM_RSOCKET_VECTOR_CURSOR_H_

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::rsocket {

// A position in the buffers of a readv(2) or writev(2) call.
class VectorCursor {
 public:
  VectorCursor(const iovec* pieces, int count) : piece_(pieces), end_(pieces + count) {
    for (const iovec* piece = pieces; piece != end_; ++piece) left_ += piece->iov_len;
    Settle();
  }

  uint64_t left() const { return left_; }
  // Whether the next `length` bytes are contiguous, from data() on.
  bool contiguous(size_t length) const { return piece_ != end_ && piece_->iov_len - offset_ >= length; }
  const uint8_t* data() const { return static_cast<const uint8_t*>(piece_->iov_base) + offset_; }

  // Copies `length` bytes (at most left()) and advances by them.
  void CopyIn(const uint8_t* from, size_t length) {
    Walk(length, [&](uint8_t* here, size_t part) {
      std::memcpy(here, from, part);
      from += part;
    });
  }
  void CopyOut(uint8_t* to, size_t length) {
    Walk(length, [&](const uint8_t* here, size_t part) {
      std::memcpy(to, here, part);
      to += part;
    });
  }
  void Skip(size_t length) {
    Walk(length, [](uint8_t*, size_t) {});
  }

 private:
  template <typename Visit>
  void Walk(size_t length, Visit visit) {
    while (length > 0) {
      const size_t part = std::min(length, piece_->iov_len - offset_);
      visit(static_cast<uint8_t*>(piece_->iov_base) + offset_, part);
      offset_ += part;
      left_ -= part;
      length -= part;
      Settle();
    }
  }
  void Settle() {
    while (piece_ != end_ && offset_ == piece_->iov_len) {
      ++piece_;
      offset_ = 0;
    }
  }

  const iovec* piece_;
  const iovec* end_;
  size_t offset_ = 0;
  uint64_t left_ = 0;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_VECTOR_CURSOR_H_
