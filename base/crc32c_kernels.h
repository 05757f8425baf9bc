#ifndef BASE_CRC32C_KERNELS_H_
#define BASE_CRC32C_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>

// The implementations of CRC32C. crc32c.cc chooses one; its test compares them. Private to base/.
namespace weft::crc32c {

// Works on the register (not inverted). `copy` also stores the bytes at `to`.
struct Kernel {
  const char* name;
  uint32_t (*extend)(uint32_t state, const uint8_t* from, size_t count);
  uint32_t (*copy)(uint32_t state, uint8_t* to, const uint8_t* from, size_t count);
};

extern const Kernel kPortable;  // slicing by 8

// Best first; null where the processor or the compiler's target does not have it.
inline constexpr size_t kMaxHardwareKernels = 2;
std::array<const Kernel*, kMaxHardwareKernels> HardwareKernels();

// The polynomial 0x1edc6f41, bit-reversed: bit 31 is the coefficient of x^0.
inline constexpr uint32_t kPolynomial = 0x82f63b78;

// a * b mod P, for polynomials in that representation.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// x^n mod P.
constexpr uint32_t PowerOfX(uint64_t n) {
  uint32_t power = 0x80000000;   // x^0
  uint32_t square = 0x40000000;  // x^1
  for (; n != 0; n >>= 1) {
    if (n & 1) power = Multiply(power, square);
    square = Multiply(square, square);
  }
  return power;
}

}  // namespace weft::crc32c

#endif  // BASE_CRC32C_KERNELS_H_
