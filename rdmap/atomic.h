#ifndef RDMAP_ATOMIC_H_
#define RDMAP_ATOMIC_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"
#include "ddp/types.h"
#include "rdmap/host.h"

// Headers of RFC 7306: atomic operations (section 5.2) and immediate data (section 6.2).
namespace weft::rdmap {

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                      Reserved (Not Used)              |AOpCode|
// |                       Request Identifier                      |
// |                          Remote STag                          |
// |                      Remote Tagged Offset (64)                |
// |                       Add or Swap Data (64)                   |
// |                       Add or Swap Mask (64)                   |
// |                         Compare Data (64)                     |
// |                         Compare Mask (64)                     |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
struct AtomicRequestHeader {
  static constexpr size_t kLength = 52;

  AtomicOperation operation;
  uint32_t identifier = 0;
  ddp::STag stag;
  ddp::TaggedOffset offset;

  // nullopt: shorter than kLength, or the operation is not in RFC 7306 figure 5.
  static std::optional<AtomicRequestHeader> Parse(ByteSpan bytes);
  size_t Serialize(MutableByteSpan storage) const;  // kLength bytes
};

// |                    Original Request Identifier                |
// |                    Original Remote Data Value (64)            |
struct AtomicResponseHeader {
  static constexpr size_t kLength = 12;

  uint32_t identifier = 0;
  uint64_t original = 0;

  static std::optional<AtomicResponseHeader> Parse(ByteSpan bytes);  // nullopt: shorter than kLength
  size_t Serialize(MutableByteSpan storage) const;
};

// |                        Immediate Data (64)                    |
// Verbs have 32 bits of immediate data: the first four bytes. The others are zero.
inline constexpr size_t kImmediateLength = 8;

}  // namespace weft::rdmap

#endif  // RDMAP_ATOMIC_H_
