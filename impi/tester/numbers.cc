#include "impi/tester/numbers.h"

#include "impi/run/authentication.h"

namespace weft::impi::tester {

std::optional<uint64_t> ParseBits(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto number = NumberOf(text);
  if (!number || !negative) return number;
  if (*number > uint64_t{1} << 63) return std::nullopt;
  return ~*number + 1;
}

std::optional<uint64_t> ParseUpTo(std::string_view text, uint64_t most) {
  const auto number = NumberOf(text);
  if (!number || *number > most) return std::nullopt;
  return number;
}

}  // namespace weft::impi::tester
