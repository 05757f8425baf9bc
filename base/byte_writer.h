#ifndef BASE_BYTE_WRITER_H_
#define BASE_BYTE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/byte_reader.h"
#include "base/check.h"

namespace weft {

// Writes big-endian fields from front to back into storage of the caller. Writing past the end is a broken invariant.
class ByteWriter {
 public:
  explicit ByteWriter(MutableByteSpan storage) : storage_(storage) {}

  size_t size() const { return at_; }
  size_t room() const { return storage_.size() - at_; }
  ByteSpan written() const { return storage_.first(at_); }

  void U8(uint8_t v) { Unsigned(v, 1); }
  void U16(uint16_t v) { Unsigned(v, 2); }
  void U32(uint32_t v) { Unsigned(v, 4); }
  void U64(uint64_t v) { Unsigned(v, 8); }
  void Bytes(ByteSpan bytes) {
    WEFT_CHECK(bytes.size() <= room());
    if (!bytes.empty()) std::memcpy(storage_.data() + at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void Zeros(size_t count) {
    WEFT_CHECK(count <= room());
    if (count != 0) std::memset(storage_.data() + at_, 0, count);
    at_ += count;
  }

 private:
  void Unsigned(uint64_t v, size_t width) {
    WEFT_CHECK(width <= room());
    for (size_t i = 0; i < width; ++i) storage_[at_ + i] = static_cast<uint8_t>(v >> (8 * (width - 1 - i)));
    at_ += width;
  }

  MutableByteSpan storage_;
  size_t at_ = 0;
};

}  // namespace weft

#endif  // BASE_BYTE_WRITER_H_
