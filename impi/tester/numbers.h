#ifndef IMPI_TESTER_NUMBERS_H_
#define IMPI_TESTER_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::impi::tester {

// Decimal, with a minus or not, or hexadecimal behind 0x; all of the text. As the bits of 64, with 0 to 2^64 - 1 or,
// with a minus, -2^63 to -1.
std::optional<uint64_t> ParseBits(std::string_view text);
// The same from 0 to `most`.
std::optional<uint64_t> ParseUpTo(std::string_view text, uint64_t most);

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_NUMBERS_H_
