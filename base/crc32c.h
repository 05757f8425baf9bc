#ifndef BASE_CRC32C_H_
#define BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "base/byte_reader.h"

namespace weft {

// CRC32C (Castagnoli), as RFC 5044 section 4.4 takes it from iSCSI (RFC 3720 section 12.1): reflected, started and
// finished with all ones. Uses the processor's instructions where there are some, found at run time.
//
// A checksum of a whole is made from parts: Crc32cExtend(Crc32c(a), b) == Crc32c(a followed by b). The checksum of no
// bytes is 0. All are thread safe and allocate nothing.
uint32_t Crc32cExtend(uint32_t crc, ByteSpan bytes);
inline uint32_t Crc32c(ByteSpan bytes) { return Crc32cExtend(0, bytes); }

// Copies `count` bytes and extends `crc` by them in one pass. The two ranges must not overlap.
uint32_t Crc32cCopy(uint32_t crc, uint8_t* to, const uint8_t* from, size_t count);

// Four bytes on the wire. The register is sent least significant byte first (RFC 3720 appendix B.4 and the example of
// RFC 5044 section 4.4 show it), unlike every other field of the protocols.
inline void StoreCrc32c(uint8_t* at, uint32_t crc) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(crc >> (8 * i));
}
inline uint32_t LoadCrc32c(const uint8_t* at) {
  return uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}

}  // namespace weft

#endif  // BASE_CRC32C_H_
