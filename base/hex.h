#ifndef BASE_HEX_H_
#define BASE_HEX_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

// Two digits of 0-9a-f a byte.
std::string HexOf(std::span<const uint8_t> bytes);

// Fills `bytes` from two digits each, of either case. False: there are more or fewer, or something else among them;
// `bytes` may hold anything then.
bool ParseHex(std::string_view digits, std::span<uint8_t> bytes);

}  // namespace weft

#endif  // BASE_HEX_H_
