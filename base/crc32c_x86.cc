#include "base/crc32c_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

// Compiled for these processors function by function: the rest of the program runs anywhere.
#define WEFT_TARGET_SSE42 __attribute__((target("sse4.2,pclmul")))
#define WEFT_TARGET_AVX512 __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

namespace weft::crc32c {
namespace {

inline uint64_t Load(const uint8_t* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

template <bool kCopy>
inline uint64_t Take(uint8_t* to, const uint8_t* from) {
  const uint64_t word = Load(from);
  if constexpr (kCopy) std::memcpy(to, &word, sizeof(word));
  return word;
}

// The factor that advances a register over `bytes` zero bytes: the carry-less product of two reflected 32-bit values is
// short of one x, and crc32q multiplies by x^32.
constexpr uint32_t AdvanceBy(size_t bytes) { return PowerOfX(8 * bytes - 33); }

// The crc32 instruction takes three cycles but one can start in each: three lanes of kLane bytes side by side keep it
// busy.
template <size_t kLane, bool kCopy>
WEFT_TARGET_SSE42 inline uint32_t ThreeLanes(uint32_t state, uint8_t* to, const uint8_t* from) {
  uint64_t a = state, b = 0, c = 0;
  for (size_t i = 0; i < kLane; i += 8) {
    a = _mm_crc32_u64(a, Take<kCopy>(to + i, from + i));
    b = _mm_crc32_u64(b, Take<kCopy>(to + kLane + i, from + kLane + i));
    c = _mm_crc32_u64(c, Take<kCopy>(to + 2 * kLane + i, from + 2 * kLane + i));
  }
  constexpr int64_t kTwoLanes = AdvanceBy(2 * kLane);
  constexpr int64_t kOneLane = AdvanceBy(kLane);
  const __m128i factors = _mm_set_epi64x(kOneLane, kTwoLanes);
  const __m128i first = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(a)), factors, 0x00);
  const __m128i second = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(b)), factors, 0x10);
  const uint64_t product = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_xor_si128(first, second)));
  return static_cast<uint32_t>(_mm_crc32_u64(0, product) ^ c);
}

template <bool kCopy>
WEFT_TARGET_SSE42 uint32_t Sse42(uint32_t state, uint8_t* to, const uint8_t* from, size_t count) {
  size_t at = 0;
  for (; count - at >= 3 * 1024; at += 3 * 1024) state = ThreeLanes<1024, kCopy>(state, to + at, from + at);
  for (; count - at >= 3 * 128; at += 3 * 128) state = ThreeLanes<128, kCopy>(state, to + at, from + at);
  for (; count - at >= 3 * 32; at += 3 * 32) state = ThreeLanes<32, kCopy>(state, to + at, from + at);
  uint64_t wide = state;
  for (; count - at >= 8; at += 8) wide = _mm_crc32_u64(wide, Take<kCopy>(to + at, from + at));
  state = static_cast<uint32_t>(wide);
  for (; at != count; ++at) {
    const uint8_t byte = from[at];
    if constexpr (kCopy) to[at] = byte;
    state = _mm_crc32_u8(state, byte);
  }
  return state;
}

// Folding: a 512-bit accumulator holds four 128-bit polynomials; each is multiplied by x^bits (its low half, which is
// the higher powers, by x^(bits + 64)) and added to the data that far ahead.
template <size_t kBits>
WEFT_TARGET_AVX512 inline __m512i FoldFactors() {
  constexpr int64_t low = static_cast<int64_t>(uint64_t{PowerOfX(kBits + 64 - 1)} << 32);
  constexpr int64_t high = static_cast<int64_t>(uint64_t{PowerOfX(kBits - 1)} << 32);
  return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

WEFT_TARGET_AVX512 inline __m512i Fold(__m512i accumulator, __m512i factors, __m512i data) {
  const __m512i low = _mm512_clmulepi64_epi128(accumulator, factors, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(accumulator, factors, 0x11);
  return _mm512_ternarylogic_epi64(low, high, data, 0x96);  // the exclusive or of three
}

template <bool kCopy>
WEFT_TARGET_AVX512 inline __m512i Take512(uint8_t* to, const uint8_t* from) {
  const __m512i data = _mm512_loadu_si512(from);
  if constexpr (kCopy) _mm512_storeu_si512(to, data);
  return data;
}

template <bool kCopy>
WEFT_TARGET_AVX512 uint32_t Avx512(uint32_t state, uint8_t* to, const uint8_t* from, size_t count) {
  if (count < 256) return Sse42<kCopy>(state, to, from, count);

  __m512i a = Take512<kCopy>(to, from);
  __m512i b = Take512<kCopy>(to + 64, from + 64);
  __m512i c = Take512<kCopy>(to + 128, from + 128);
  __m512i d = Take512<kCopy>(to + 192, from + 192);
  a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  size_t at = 256;
  const __m512i by_2048 = FoldFactors<2048>();
  for (; count - at >= 256; at += 256) {
    a = Fold(a, by_2048, Take512<kCopy>(to + at, from + at));
    b = Fold(b, by_2048, Take512<kCopy>(to + at + 64, from + at + 64));
    c = Fold(c, by_2048, Take512<kCopy>(to + at + 128, from + at + 128));
    d = Fold(d, by_2048, Take512<kCopy>(to + at + 192, from + at + 192));
  }
  const __m512i by_512 = FoldFactors<512>();
  b = Fold(a, by_512, b);
  c = Fold(b, by_512, c);
  d = Fold(c, by_512, d);
  for (; count - at >= 64; at += 64) d = Fold(d, by_512, Take512<kCopy>(to + at, from + at));

  // What is left is congruent to the data so far and 64 bytes long.
  alignas(64) uint8_t rest[64];
  _mm512_store_si512(rest, d);
  uint64_t wide = 0;
  for (size_t i = 0; i < sizeof(rest); i += 8) wide = _mm_crc32_u64(wide, Load(rest + i));
  return Sse42<kCopy>(static_cast<uint32_t>(wide), to + at, from + at, count - at);
}

// Without a copy `to` is only counted on, never written to.
uint8_t* Nowhere(const uint8_t* from) { return const_cast<uint8_t*>(from); }

uint32_t ExtendSse42(uint32_t state, const uint8_t* from, size_t count) {
  return Sse42<false>(state, Nowhere(from), from, count);
}
uint32_t CopySse42(uint32_t state, uint8_t* to, const uint8_t* from, size_t count) {
  return Sse42<true>(state, to, from, count);
}
uint32_t ExtendAvx512(uint32_t state, const uint8_t* from, size_t count) {
  return Avx512<false>(state, Nowhere(from), from, count);
}
uint32_t CopyAvx512(uint32_t state, uint8_t* to, const uint8_t* from, size_t count) {
  return Avx512<true>(state, to, from, count);
}

constexpr Kernel kSse42 = {"SSE4.2", ExtendSse42, CopySse42};
constexpr Kernel kAvx512 = {"AVX-512 VPCLMULQDQ", ExtendAvx512, CopyAvx512};

}  // namespace

std::array<const Kernel*, kMaxHardwareKernels> HardwareKernels() {
  __builtin_cpu_init();
  const bool sse42 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  const bool avx512 = sse42 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
  return {avx512 ? &kAvx512 : nullptr, sse42 ? &kSse42 : nullptr};
}

}  // namespace weft::crc32c

#endif  // __x86_64__
