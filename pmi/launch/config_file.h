#ifndef PMI_LAUNCH_CONFIG_FILE_H_
#define PMI_LAUNCH_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi {

// The file of -configfile. Each line has the options, the program and the arguments that are between two colons on a
// command line. Quotes and backslashes work as in a shell, without substitutions. A '#' at the beginning of a word
// makes the rest of the line a comment. A backslash at the end of a line joins it with the next line.
struct ConfigLine {
  int number = 0;  // number of its first line in the file, from 1 on
  std::vector<std::string> words;
  bool operator==(const ConfigLine&) const = default;
};

inline constexpr size_t kLargestConfigFile = 16 << 20;  // bytes: 65,536 programs of 256 bytes each

// The lines that are not empty. `name` is for messages, which contain file and line.
Result<std::vector<ConfigLine>, PmiError> ParseConfigFile(std::string_view text, const std::string& name);
// The same for the file `name`. Also an error: it cannot be read, or is larger than kLargestConfigFile.
Result<std::vector<ConfigLine>, PmiError> ReadConfigFile(const std::string& name);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_CONFIG_FILE_H_
