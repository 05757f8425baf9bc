#ifndef DDP_HEADER_H_
#define DDP_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/byte_reader.h"
#include "base/result.h"
#include "ddp/types.h"

namespace weft::ddp {

// The DDP version (DV of RFC 5041 section 4.1), sent and accepted.
inline constexpr uint8_t kVersion = 1;

// RFC 5041 section 4.1:  |T|L| Rsvd  | DV|  the first byte of every segment.
struct ControlField {
  bool tagged = false;
  bool last = false;
  uint8_t version = kVersion;  // 2 bits

  // Ignores Rsvd, as the RFC requires.
  static constexpr ControlField Parse(uint8_t byte) {
    return {(byte & kTaggedBit) != 0, (byte & kLastBit) != 0, static_cast<uint8_t>(byte & kVersionMask)};
  }
  constexpr uint8_t Serialize() const {
    return static_cast<uint8_t>((tagged ? kTaggedBit : 0) | (last ? kLastBit : 0) | (version & kVersionMask));
  }

 private:
  static constexpr uint8_t kTaggedBit = 0x80, kLastBit = 0x40, kVersionMask = 0x03;
};

enum class HeaderError : uint8_t {
  kTruncated,   // shorter than the header
  kBadVersion,  // DV is not 1
  kOtherModel,  // the T flag is that of the other kind of header
};

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//                                 +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//                                 |1|L| Rsvd  | DV|   RsvdULP     |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                              STag                             |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                               TO                              |
// |                                                               |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// RFC 5041 section 4.2.
struct TaggedHeader {
  static constexpr size_t kLength = 14;

  bool last = false;
  uint8_t rsvd_ulp = 0;
  STag stag;
  TaggedOffset offset;

  static Result<TaggedHeader, HeaderError> Parse(ByteSpan bytes);
  // Writes kLength bytes; `storage` holds at least as many. Returns kLength.
  size_t Serialize(MutableByteSpan storage) const;
  std::string ToString() const;
};

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//                                 +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//                                 |0|L| Rsvd  | DV| RsvdULP[0:7]  |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                            RsvdULP[8:39]                      |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                               QN                              |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                              MSN                              |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                              MO                               |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// RFC 5041 section 4.3.
struct UntaggedHeader {
  static constexpr size_t kLength = 18;

  bool last = false;
  uint8_t rsvd_ulp = 0;        // RsvdULP[0:7]
  uint32_t rsvd_ulp_word = 0;  // RsvdULP[8:39]
  uint32_t queue = 0;          // QN
  Msn msn;
  uint32_t message_offset = 0;  // MO, bytes

  static Result<UntaggedHeader, HeaderError> Parse(ByteSpan bytes);
  size_t Serialize(MutableByteSpan storage) const;
  std::string ToString() const;
};

inline constexpr size_t kMaxHeaderLength = UntaggedHeader::kLength;

}  // namespace weft::ddp

#endif  // DDP_HEADER_H_
