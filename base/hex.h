#ifndef BASE_HEX_H_
#define BASE_HEX_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

// Two lower-case hexadecimal digits for each byte.
std::string HexOf(std::span<const uint8_t> bytes);

// Fills `bytes` from two hexadecimal digits each, of either case. Returns false if the number of digits is wrong or
// another character is among them; the content of `bytes` is then undefined.
bool ParseHex(std::string_view digits, std::span<uint8_t> bytes);

}  // namespace weft

#endif  // BASE_HEX_H_
