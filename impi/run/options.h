#ifndef IMPI_RUN_OPTIONS_H_
#define IMPI_RUN_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/wire/command.h"

namespace weft::impi {

// getenv(3), or a test's.
using EnvironmentReader = std::function<const char*(const char*)>;

// `impirun -server N [-port P] [-auth LIST]` (IMPI 0.0, section 2.2.1).
struct ServerOptions {
  int clients = 0;                  // 1 to 32
  uint16_t port = 0;                // 0: any that is free
  std::vector<AuthMethod> methods;  // that are available, the preferred one first; at least one
  uint64_t key = 0;                 // where kKey is among them

  bool operator==(const ServerOptions&) const = default;
};

// `words`: the command line without the name of the program. Methods come from the environment: IMPI_AUTH_KEY, a number of 64 bits, makes kKey available;
// IMPI_AUTH_NONE, with any value, kNone. Why not: a sentence that names the word.
Result<ServerOptions, std::string> ParseServerOptions(const std::vector<std::string>& words, const EnvironmentReader& get);

}  // namespace weft::impi

#endif  // IMPI_RUN_OPTIONS_H_
