#ifndef IMPI_RUN_OPTIONS_H_
#define IMPI_RUN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/run/authentication.h"
#include "impi/wire/command.h"

namespace weft::impi {

// `impirun -server N [-port P] [-auth LIST]` (IMPI 0.0, section 2.2.1).
struct ServerOptions {
  int clients = 0;    // 1 to 32
  uint16_t port = 0;  // 0: any that is free
  Authentication authentication;

  bool operator==(const ServerOptions&) const = default;
};

// `words`: the command line without the name of the program. Why not: a sentence that names the word.
Result<ServerOptions, std::string> ParseServerOptions(const std::vector<std::string>& words, const EnvironmentReader& get);

}  // namespace weft::impi

#endif  // IMPI_RUN_OPTIONS_H_
