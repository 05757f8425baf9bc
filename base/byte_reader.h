#ifndef BASE_BYTE_READER_H_
#define BASE_BYTE_READER_H_

#include <endian.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"

namespace weft {

using ByteSpan = std::span<const uint8_t>;
using MutableByteSpan = std::span<uint8_t>;

// Reads big-endian fields from front to back. The caller checks `remaining()` once per header. Reading past the end is
// a broken invariant: a forgotten check crashes a test, and never reads outside the buffer.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) : bytes_(bytes) {}

  size_t remaining() const { return bytes_.size() - at_; }
  uint8_t U8() { return Take<uint8_t>(); }
  uint16_t U16() { return be16toh(Take<uint16_t>()); }
  uint32_t U32() { return be32toh(Take<uint32_t>()); }
  uint64_t U64() { return be64toh(Take<uint64_t>()); }
  ByteSpan Bytes(size_t count) {
    WEFT_CHECK(count <= remaining());
    ByteSpan taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  ByteSpan Rest() { return Bytes(remaining()); }

 private:
  template <typename Unsigned>
  [[gnu::always_inline]] inline Unsigned Take() {
    WEFT_CHECK(sizeof(Unsigned) <= remaining());
    Unsigned value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  ByteSpan bytes_;
  size_t at_ = 0;
};

}  // namespace weft

#endif  // BASE_BYTE_READER_H_
