#ifndef TOOLS_WEFT_WORDS_H_
#define TOOLS_WEFT_WORDS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::tool {

// What is said about words of a command line that mean nothing. Each names the word and, where one is near, what was
// meant.

// `words` stand where a command was expected. A program's name gets `weft run` in front.
std::string UnknownCommand(const std::vector<std::string>& words, std::span<const std::string_view> commands);

// `word` is none of `known`, which are what `where` ("weft stat") takes. An option may be known by its name without the
// dashes.
std::string UnknownWord(std::string_view where, std::string_view word, std::span<const std::string_view> known);

// What to write instead of "weft run WEFT_NAME=VALUE ..." and its like, as the rest of a sentence; empty: `word` is no
// setting.
std::string MisplacedSetting(std::string_view word);

// The process id that `text` is, or nothing: a decimal number from 1 to 2^22, the most that Linux gives.
std::optional<int> ParsePid(std::string_view text);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_WORDS_H_
