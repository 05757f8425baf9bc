#include "mpi_hybrid/p2p/engine/payload.h"

#include <algorithm>

namespace weft::mpi {

void Payload::LookAtGrain() {
  constexpr size_t kPieces = 8, kSmall = 2048, kVerySmall = 128;
  iovec pieces[kPieces];
  const size_t count = Peek(pieces, left_);
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  fine_grained_ = count > 2 && bytes < count * kSmall;
  very_fine_grained_ = count > 2 && bytes < count * kVerySmall;
}

size_t Payload::Peek(std::span<iovec> pieces, size_t limit) const {
  if (left_ == 0 || pieces.empty()) return 0;
  limit = std::min(limit, left_);
  if (!cursor_) {
    pieces[0] = {at_, limit};
    return 1;
  }
  TypeCursor ahead = *cursor_;
  return ahead.Next(pieces, limit);
}

void Payload::Advance(size_t bytes) {
  WEFT_CHECK(bytes <= left_);
  left_ -= bytes;
  if (!cursor_) {
    at_ += bytes;
    return;
  }
  iovec pieces[64];
  while (bytes != 0) {
    const size_t count = cursor_->Next(pieces, bytes);
    for (size_t i = 0; i < count; ++i) bytes -= pieces[i].iov_len;
    WEFT_CHECK(count != 0);
  }
}

void Payload::FillPieces(std::span<const uint8_t> in) {
  WEFT_CHECK(in.size() <= left_);
  if (in.empty()) return;
  left_ -= in.size();
  Unpack(*cursor_, in);
}

void Payload::Take(std::span<uint8_t> out) {
  WEFT_CHECK(out.size() <= left_);
  if (out.empty()) return;
  left_ -= out.size();
  if (!cursor_) {
    CopyBytes(out.data(), at_, out.size());
    at_ += out.size();
  } else {
    Pack(*cursor_, out);
  }
}

}  // namespace weft::mpi
