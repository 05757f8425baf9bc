#ifndef IMPI_TESTER_RUN_OPTIONS_H_
#define IMPI_TESTER_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "impi/tester/run/verdict.h"
#include "impi/tester/script.h"

namespace weft::impi::tester {

// `weft-impi-test server|client [OPTIONS] SCRIPT... [-- COMMAND...]`
struct Options {
  Target target = Target::kServer;
  Subject subject;
  std::vector<std::string> scripts;  // files and folders
  bool traces = false;               // print what was sent and came, also of scripts that pass
  std::optional<uint16_t> page;      // -serve: the port; 0: any
};

// `words`: the command line without the name of the program. Why not: a sentence that names the word and what is
// allowed.
Result<Options, std::string> ParseOptions(const std::vector<std::string>& words);

std::string Help();

}  // namespace weft::impi::tester

#endif  // IMPI_TESTER_RUN_OPTIONS_H_
