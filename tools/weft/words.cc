#include "tools/weft/words.h"

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "tools/weft/program.h"

namespace weft::tool {
namespace {

constexpr int kMostPid = 1 << 22;

std::string Joined(std::span<const std::string_view> words) {
  std::string all;
  for (size_t i = 0; i < words.size(); ++i) {
    all += std::string(i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + std::string(words[i]);
  }
  return all;
}

std::string_view WithoutDashes(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return word;
}

// The one of `known` that `word` abbreviates, resembles, or is but for dashes.
std::optional<std::string_view> Meant(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view bare = WithoutDashes(word);
  std::vector<std::string_view> names;
  for (const std::string_view name : known) names.push_back(WithoutDashes(name));
  std::optional<size_t> found;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == bare) return known[i];
    if (bare.size() < 2 || !names[i].starts_with(bare)) continue;
    if (found) return std::nullopt;  // it abbreviates several
    found = i;
  }
  if (found) return known[*found];
  const auto nearest = NearestName(bare, names);
  if (!nearest) return std::nullopt;
  return known[static_cast<size_t>(std::find(names.begin(), names.end(), *nearest) - names.begin())];
}

}  // namespace

std::string UnknownCommand(const std::vector<std::string>& words, std::span<const std::string_view> commands) {
  const std::string& word = words.front();
  const bool option = word.starts_with('-');
  std::string text = "weft: \"" + word + "\" is not " + (option ? "an option" : "a command") + " of weft; ";
  if (const std::string setting = MisplacedSetting(word); !setting.empty()) return text + setting;
  if (const auto meant = Meant(word, commands)) return text + "did you mean weft " + std::string(*meant) + "?";
  if (!option && !FindProgram(word).empty()) return text + "did you mean weft run " + word + "?";
  std::vector<std::string_view> listed;
  for (const std::string_view command : commands) {
    if (!command.starts_with('-')) listed.push_back(command);
  }
  return text + "the commands are " + Joined(listed) + " (weft --help)";
}

std::string UnknownWord(std::string_view where, std::string_view word, std::span<const std::string_view> known) {
  std::string text =
      std::string(where) + ": \"" + std::string(word) + "\" is not an argument of " + std::string(where) + "; ";
  if (const auto meant = Meant(word, known)) return text + "did you mean " + std::string(*meant) + "?";
  return text + std::string(where) + " --help lists them";
}

std::string MisplacedSetting(std::string_view word) {
  if (!word.starts_with("WEFT_") || word.find('=') == std::string_view::npos) return "";
  return "put settings in front: " + std::string(word) + " weft run PROGRAM";
}

std::optional<int> ParsePid(std::string_view text) {
  int pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid < 1 || pid > kMostPid) return std::nullopt;
  return pid;
}

}  // namespace weft::tool
