#ifndef TOOLS_WEFT_WORDS_H_
#define TOOLS_WEFT_WORDS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::tool {

// Messages about unknown words of a command line. Each names the word and, if a known one is near, suggests it.

// `words` are given where a command is expected. If they begin with the name of a program, suggests `weft run`.
std::string UnknownCommand(const std::vector<std::string>& words, std::span<const std::string_view> commands);

// `word` is none of `known`, the words that `where` ("weft stat") takes. An option is also found without its dashes.
std::string UnknownWord(std::string_view where, std::string_view word, std::span<const std::string_view> known);

// What to write instead of "weft run WEFT_NAME=VALUE ..." and similar lines, as the rest of a sentence. Empty: `word`
// is not a setting.
std::string MisplacedSetting(std::string_view word);

// The process id in `text`: a decimal number from 1 to 2^22, the largest on Linux. nullopt: `text` is none.
std::optional<int> ParsePid(std::string_view text);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_WORDS_H_
