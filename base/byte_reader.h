#ifndef BASE_BYTE_READER_H_
#define BASE_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"

namespace weft {

using ByteSpan = std::span<const uint8_t>;
using MutableByteSpan = std::span<uint8_t>;

// Reads big-endian fields from front to back. The caller checks `remaining()` once per header; reading past the end is a
// broken invariant, so a forgotten check is a crash in a test and never a read outside the buffer.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) : bytes_(bytes) {}

  size_t remaining() const { return bytes_.size() - at_; }
  uint8_t U8() { return static_cast<uint8_t>(Unsigned(1)); }
  uint16_t U16() { return static_cast<uint16_t>(Unsigned(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Unsigned(4)); }
  uint64_t U64() { return Unsigned(8); }
  ByteSpan Bytes(size_t count) {
    WEFT_CHECK(count <= remaining());
    ByteSpan taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  ByteSpan Rest() { return Bytes(remaining()); }

 private:
  uint64_t Unsigned(size_t width) {
    WEFT_CHECK(width <= remaining());
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value = value << 8 | bytes_[at_ + i];
    at_ += width;
    return value;
  }

  ByteSpan bytes_;
  size_t at_ = 0;
};

}  // namespace weft

#endif  // BASE_BYTE_READER_H_
