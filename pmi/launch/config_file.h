#ifndef PMI_LAUNCH_CONFIG_FILE_H_
#define PMI_LAUNCH_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The file of -configfile: on each line the options, the program and the arguments that would stand between two colons
// of a command line. Quotes and backslashes are as in a shell, but nothing is replaced; a '#' where a word would begin
// makes the rest of the line a comment; a backslash at the end of a line joins it with the next.
struct ConfigLine {
  int number = 0;  // in the file, from 1 on: where the line begins
  std::vector<std::string> words;
  bool operator==(const ConfigLine&) const = default;
};

inline constexpr size_t kLargestConfigFile = 16 << 20;  // bytes: 65,536 programs of 256 bytes each

// The lines that hold something. `name` is for messages, which say file and line.
Result<std::vector<ConfigLine>, PmiError> ParseConfigFile(std::string_view text, const std::string& name);
// The same of the file `name`. An error too where it cannot be read, or is larger than kLargestConfigFile.
Result<std::vector<ConfigLine>, PmiError> ReadConfigFile(const std::string& name);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_CONFIG_FILE_H_
