#ifndef SIM_DEVICE_LIMITS_H_
#define SIM_DEVICE_LIMITS_H_

#include <cstdint>

namespace weft::sim {

// The limits of the simulated RNIC. query_device reports them and the RNIC enforces them.
inline constexpr uint32_t kMaxQp = 65536;
inline constexpr uint32_t kMaxQpWr = 32768;
inline constexpr uint32_t kMaxSge = 32;
inline constexpr uint32_t kMaxInline = 1024;
inline constexpr uint32_t kMaxSrq = 65536;
inline constexpr uint32_t kMaxSrqWr = 32768;
inline constexpr uint32_t kMaxCq = 65536;
inline constexpr uint32_t kMaxCqe = 1 << 22;
inline constexpr uint32_t kMaxMr = 1 << 20;
inline constexpr uint32_t kMaxMw = 1 << 20;             // windows and regions share kMaxMr entries
inline constexpr uint32_t kMaxPd = 65536;
inline constexpr uint32_t kMaxAh = 1 << 20;
inline constexpr uint32_t kMaxGroups = 1024;            // multicast groups joined at a time, each a UDP socket
inline constexpr uint32_t kMaxReads = 128;              // IRD and ORD
inline constexpr uint64_t kMaxMrSize = uint64_t{1} << 46;
inline constexpr uint32_t kMaxMessage = 1u << 31;       // bytes of one message

}  // namespace weft::sim

#endif  // SIM_DEVICE_LIMITS_H_
