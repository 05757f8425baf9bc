#ifndef IMPI_RUN_AUTHENTICATION_H_
#define IMPI_RUN_AUTHENTICATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "impi/wire/command.h"

// What the command lines of a server and of a client have in common (IMPI 0.0, sections 2.2.4 and 2.3.3).
namespace weft::impi {

// getenv(3), or a test's.
using EnvironmentReader = std::function<const char*(const char*)>;

// Decimal, or hexadecimal behind 0x; all of the text.
std::optional<uint64_t> NumberOf(std::string_view text);
// The same from 0 to `most`.
std::optional<uint32_t> NumberUpTo(std::string_view text, uint32_t most);

// The value of -auth, "3,1-0": the numbers of methods, the preferred one first. A range may descend. Why not: a sentence that names the value.
Result<std::vector<int>, std::string> ParseAuthList(const std::string& list);

struct Authentication {
  std::vector<AuthMethod> methods;  // that are available, the preferred one first; at least one
  uint64_t key = 0;                 // where kKey is among them

  bool Has(AuthMethod method) const;
  bool operator==(const Authentication&) const = default;
};

// Those of `wanted` (empty: of all, the key first) that the environment makes available: IMPI_AUTH_KEY, a number of 64 bits, makes kKey available;
// IMPI_AUTH_NONE, with any value, kNone. Why not: a sentence that ends with `advice` if there is none.
Result<Authentication, std::string> AvailableAuthentication(const std::vector<int>& wanted, const EnvironmentReader& get, const std::string& advice);

}  // namespace weft::impi

#endif  // IMPI_RUN_AUTHENTICATION_H_
