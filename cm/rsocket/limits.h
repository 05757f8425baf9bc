#ifndef CM_RSOCKET_LIMITS_H_
#define CM_RSOCKET_LIMITS_H_

#include <cstdint>

namespace weft::rsocket {

// Buffers, in bytes. Half of a receive buffer is announced at a time. A socket is writable if kLowWater bytes of its
// send buffer are free.
inline constexpr uint32_t kLowWater = 2048;
inline constexpr uint32_t kLeastBuffer = 2 * kLowWater;
inline constexpr uint32_t kMostBuffer = 1 << 28;
// Work requests. Credits count modulo 2^16; comparisons use the signed difference.
inline constexpr uint32_t kLeastQueue = 16;
inline constexpr uint32_t kMostQueue = 0x7ffe;
// Bytes sent inline. Entries written into the peer's lists are always inline.
inline constexpr uint32_t kLeastInline = 24;
inline constexpr uint32_t kMostInline = 512;
inline constexpr uint32_t kMostMapEntries = 0x7f00;
// Bytes of one RDMA Write.
inline constexpr uint32_t kMostTransfer = 1 << 16;
// Send work requests that are reserved for control messages; one such message takes up to two.
inline constexpr uint32_t kControlSlots = 4;

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_LIMITS_H_
