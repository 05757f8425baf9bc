#include "base/crc32c_kernels.h"

#if defined(__aarch64__)

#include <sys/auxv.h>
#if !defined(__clang__)
#include <arm_acle.h>
#endif

#include <cstring>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

// Compiled for processors with the extension function by function, as in crc32c_x86.cc: ARMv8.0 need not have it.
#if defined(__clang__)
#define WEFT_TARGET_CRC __attribute__((target("crc")))
#else
#define WEFT_TARGET_CRC __attribute__((target("+crc")))
#endif

namespace weft::crc32c {
namespace {

#if defined(__clang__)
// Older ones declare those of arm_acle.h only where the whole file is compiled for such processors.
WEFT_TARGET_CRC inline uint32_t Crc8(uint32_t state, uint8_t byte) { return __builtin_arm_crc32cb(state, byte); }
WEFT_TARGET_CRC inline uint32_t Crc64(uint32_t state, uint64_t word) { return __builtin_arm_crc32cd(state, word); }
#else
WEFT_TARGET_CRC inline uint32_t Crc8(uint32_t state, uint8_t byte) { return __crc32cb(state, byte); }
WEFT_TARGET_CRC inline uint32_t Crc64(uint32_t state, uint64_t word) { return __crc32cd(state, word); }
#endif

// The instruction takes the least significant byte first.
inline uint64_t Load(const uint8_t* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  if constexpr (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) word = __builtin_bswap64(word);
  return word;
}

// Advances a register over a fixed number of zero bytes, a byte of the register at a time.
struct Advance {
  uint32_t table[4][256];
  constexpr uint32_t operator()(uint32_t state) const {
    return table[0][state & 0xff] ^ table[1][(state >> 8) & 0xff] ^ table[2][(state >> 16) & 0xff] ^
           table[3][state >> 24];
  }
};

constexpr Advance AdvanceBy(size_t bytes) {
  const uint32_t factor = PowerOfX(8 * bytes);
  uint32_t of_bit[32] = {};
  for (int bit = 0; bit < 32; ++bit) of_bit[bit] = Multiply(uint32_t{1} << bit, factor);
  Advance advance{};
  for (int k = 0; k < 4; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        if (byte >> bit & 1) advance.table[k][byte] ^= of_bit[8 * k + bit];
      }
    }
  }
  return advance;
}

// Three lanes side by side hide the latency of the instruction, as on x86.
constexpr size_t kLane = 1024;
constexpr Advance kOneLane = AdvanceBy(kLane);
constexpr Advance kTwoLanes = AdvanceBy(2 * kLane);

WEFT_TARGET_CRC uint32_t Extend(uint32_t state, const uint8_t* from, size_t count) {
  for (; count >= 3 * kLane; from += 3 * kLane, count -= 3 * kLane) {
    uint32_t a = state, b = 0, c = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      a = Crc64(a, Load(from + i));
      b = Crc64(b, Load(from + kLane + i));
      c = Crc64(c, Load(from + 2 * kLane + i));
    }
    state = kTwoLanes(a) ^ kOneLane(b) ^ c;
  }
  for (; count >= 8; from += 8, count -= 8) state = Crc64(state, Load(from));
  for (; count != 0; ++from, --count) state = Crc8(state, *from);
  return state;
}

uint32_t Copy(uint32_t state, uint8_t* to, const uint8_t* from, size_t count) {
  constexpr size_t kPiece = 2 * 3 * kLane;  // stays in the first-level cache between the two passes
  while (count != 0) {
    const size_t piece = count < kPiece ? count : kPiece;
    std::memcpy(to, from, piece);
    // Of the copy: `from` may belong to a program that is changing it.
    state = Extend(state, to, piece);
    to += piece;
    from += piece;
    count -= piece;
  }
  return state;
}

constexpr Kernel kArmv8 = {"ARMv8 CRC32", Extend, Copy};

}  // namespace

std::array<const Kernel*, kMaxHardwareKernels> HardwareKernels() {
  const bool crc = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return {crc ? &kArmv8 : nullptr, nullptr};
}

}  // namespace weft::crc32c

#elif !defined(__x86_64__)

namespace weft::crc32c {

std::array<const Kernel*, kMaxHardwareKernels> HardwareKernels() { return {}; }

}  // namespace weft::crc32c

#endif
