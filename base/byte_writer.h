#ifndef BASE_BYTE_WRITER_H_
#define BASE_BYTE_WRITER_H_

#include <endian.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/byte_reader.h"
#include "base/check.h"

namespace weft {

// Writes big-endian fields from front to back into the caller's storage. Writing past the end is a broken invariant.
class ByteWriter {
 public:
  explicit ByteWriter(MutableByteSpan storage) : storage_(storage) {}

  size_t size() const { return at_; }
  size_t room() const { return storage_.size() - at_; }
  ByteSpan written() const { return storage_.first(at_); }

  void U8(uint8_t v) { Put(v); }
  void U16(uint16_t v) { Put(htobe16(v)); }
  void U32(uint32_t v) { Put(htobe32(v)); }
  void U64(uint64_t v) { Put(htobe64(v)); }
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
  template <typename Unsigned>
  void Put(Unsigned v) {
    WEFT_CHECK(sizeof v <= room());
    std::memcpy(storage_.data() + at_, &v, sizeof v);
    at_ += sizeof v;
  }

  MutableByteSpan storage_;
  size_t at_ = 0;
};

}  // namespace weft

#endif  // BASE_BYTE_WRITER_H_
