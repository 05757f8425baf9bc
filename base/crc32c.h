#ifndef BASE_CRC32C_H_
#define BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "base/byte_reader.h"

namespace weft {

// CRC32C (Castagnoli), as RFC 5044 section 4.4 takes it from iSCSI (RFC 3720 section 12.1): bit-reflected, with an
// initial value and a final XOR of all ones. Uses the processor's CRC instructions if it has them; this is found at run
// time.
//
// Checksums can be chained: Crc32cExtend(Crc32c(a), b) == Crc32c(a followed by b). The checksum of no bytes is 0. All
// functions are thread safe and allocate nothing.
uint32_t Crc32cExtend(uint32_t crc, ByteSpan bytes);
inline uint32_t Crc32c(ByteSpan bytes) { return Crc32cExtend(0, bytes); }

// Copies `count` bytes and extends `crc` by them in one pass. The two ranges must not overlap.
uint32_t Crc32cCopy(uint32_t crc, uint8_t* to, const uint8_t* from, size_t count);

// Writes a CRC as four bytes, least significant byte first (RFC 3720 appendix B.4; also shown by the example of RFC
// 5044 section 4.4). Every other field of the protocols is big-endian.
inline void StoreCrc32c(uint8_t* at, uint32_t crc) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(crc >> (8 * i));
}
inline uint32_t LoadCrc32c(const uint8_t* at) {
  return uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}

}  // namespace weft

#endif  // BASE_CRC32C_H_
