#include "pmi/slurm/node_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "pmi/wire/message.h"

namespace weft::pmi::slurm {
namespace {

constexpr size_t kLongestNumber = 18;  // digits, of a number that fits into 64 bits
constexpr size_t kLongestName = 255;   // of a host, RFC 1035 section 2.3.4

using Names = std::vector<std::string>;

std::string Quoted(std::string_view text) { return "'" + Printable(text) + "'"; }

PmiError TooMany() { return PmiError{"there are more than " + std::to_string(kMostNodes) + " hosts"}; }

// A part of the text up to `end`, which it takes away too; all of it where there is no such character.
std::string_view TakeUntil(std::string_view* text, char end) {
  const size_t length = std::min(text->find(end), text->size());
  const std::string_view part = text->substr(0, length);
  text->remove_prefix(std::min(length + 1, text->size()));
  return part;
}

std::optional<uint64_t> ParseDigits(std::string_view text) {
  if (text.empty() || text.size() > kLongestNumber) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "7" or "07-09", appended as text.
std::optional<PmiError> AppendRange(std::string_view range, Names* numbers) {
  std::string_view rest = range;
  const bool is_pair = range.find('-') != range.npos;
  const std::string_view first_text = TakeUntil(&rest, '-');
  const std::string_view last_text = is_pair ? rest : first_text;
  const auto first = ParseDigits(first_text), last = ParseDigits(last_text);
  if (!first || !last) return PmiError{Quoted(range) + " is neither a number nor two with '-' between them"};
  if (*first > *last) return PmiError{"the range " + Quoted(range) + " ends before it begins"};
  if (*last - *first >= kMostNodes - numbers->size()) return TooMany();
  for (uint64_t number = *first; number <= *last; ++number) {
    const std::string digits = std::to_string(number);
    numbers->push_back(std::string(first_text.size() - std::min(first_text.size(), digits.size()), '0') + digits);
  }
  return std::nullopt;
}

// What stands between brackets.
Result<Names, PmiError> ExpandRanges(std::string_view ranges) {
  Names numbers;
  for (bool more = true; more;) {
    more = ranges.find(',') != ranges.npos;
    if (auto error = AppendRange(TakeUntil(&ranges, ','), &numbers)) return *error;
  }
  return numbers;
}

// Each name with each ending, the endings changing faster.
Result<Names, PmiError> Combine(const Names& names, const Names& endings) {
  if (names.size() > kMostNodes / endings.size()) return TooMany();
  Names combined;
  combined.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) combined.push_back(name + ending);
  }
  return combined;
}

bool IsPlain(std::string_view name) {
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

// One entry, "a[1-3]-x[1,2]".
Result<Names, PmiError> ExpandEntry(std::string_view entry) {
  Names names{""};
  for (std::string_view rest = entry; !rest.empty();) {
    const size_t open = std::min(rest.find('['), rest.size());
    if (names.front().size() + open > kLongestName) return PmiError{Quoted(entry) + " is not a host name"};
    for (std::string& name : names) name += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const size_t close = rest.find(']');
    if (close == rest.npos) return PmiError{Quoted(entry) + " has a '[' that is not closed"};
    const auto numbers = ExpandRanges(rest.substr(1, close - 1));
    if (!numbers) return numbers.error();
    auto combined = Combine(names, numbers.value());
    if (!combined) return combined.error();
    names = std::move(combined).value();
    rest.remove_prefix(close + 1);
  }
  // All of an entry's names are as plain as its first.
  if (!IsPlain(names.front())) return PmiError{Quoted(entry) + " is not a host name"};
  return names;
}

// The length of the first entry: a comma between brackets ends none.
size_t EntryLength(std::string_view list) {
  bool inside = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (list[i] == ',' && !inside) return i;
  }
  return list.size();
}

}  // namespace

Result<std::vector<std::string>, PmiError> ExpandNodeList(std::string_view list) {
  Names hosts;
  for (size_t at = 0; at <= list.size();) {
    const size_t length = EntryLength(list.substr(at));
    auto names = ExpandEntry(list.substr(at, length));
    if (!names) return PmiError{"in the list of hosts " + Quoted(list) + ", " + names.error().message};
    if (names->size() > kMostNodes - hosts.size()) {
      return PmiError{"in the list of hosts " + Quoted(list) + ", " + TooMany().message};
    }
    hosts.insert(hosts.end(), names->begin(), names->end());
    at += length + 1;
  }
  return hosts;
}

}  // namespace weft::pmi::slurm
