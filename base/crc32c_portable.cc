#include <cstring>

#include "base/crc32c_kernels.h"

namespace weft::crc32c {
namespace {

// kTables[0] advances the register by one byte; kTables[k] by one byte and k zero bytes after it.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state & 1) ? (state >> 1) ^ kPolynomial : state >> 1;
    tables[0][byte] = state;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t Extend(uint32_t state, const uint8_t* from, size_t count) {
  for (; count >= 8; from += 8, count -= 8) {
    state ^= uint32_t{from[0]} | uint32_t{from[1]} << 8 | uint32_t{from[2]} << 16 | uint32_t{from[3]} << 24;
    state = kTables[7][state & 0xff] ^ kTables[6][(state >> 8) & 0xff] ^ kTables[5][(state >> 16) & 0xff] ^
            kTables[4][state >> 24] ^ kTables[3][from[4]] ^ kTables[2][from[5]] ^ kTables[1][from[6]] ^
            kTables[0][from[7]];
  }
  for (; count != 0; ++from, --count) state = (state >> 8) ^ kTables[0][(state ^ *from) & 0xff];
  return state;
}

uint32_t Copy(uint32_t state, uint8_t* to, const uint8_t* from, size_t count) {
  // In pieces that stay in the first-level cache between the two passes.
  constexpr size_t kPiece = 4096;
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

}  // namespace

constinit const Kernel kPortable = {"slicing-by-8", Extend, Copy};

}  // namespace weft::crc32c
