#include "impi/run/authentication.h"

#include <algorithm>
#include <charconv>

namespace weft::impi {

std::optional<uint64_t> NumberOf(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<uint32_t> NumberUpTo(std::string_view text, uint32_t most) {
  const std::optional<uint64_t> number = NumberOf(text);
  if (!number || *number > most) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

Result<std::vector<int>, std::string> ParseAuthList(const std::string& list) {
  std::vector<int> methods;
  std::string_view rest = list;
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    const std::string_view range = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const size_t hyphen = range.find('-');
    const auto first = NumberUpTo(range.substr(0, hyphen), kMostMethods - 1);
    const auto last = hyphen == std::string_view::npos ? first : NumberUpTo(range.substr(hyphen + 1), kMostMethods - 1);
    if (!first || !last) return "-auth '" + list + "': not a list of methods; for example 1,0 or 1-0: the key (1) before none (0)";
    const int step = *first <= *last ? 1 : -1;
    for (int method = static_cast<int>(*first); method != static_cast<int>(*last) + step; method += step) methods.push_back(method);
  }
  return methods;
}

bool Authentication::Has(AuthMethod method) const { return std::find(methods.begin(), methods.end(), method) != methods.end(); }

Result<Authentication, std::string> AvailableAuthentication(const std::vector<int>& wanted, const EnvironmentReader& get, const std::string& advice) {
  static const std::vector<int> kAll = {static_cast<int>(AuthMethod::kKey), static_cast<int>(AuthMethod::kNone)};  // the stronger one first
  Authentication available;
  const char* key = get("IMPI_AUTH_KEY");
  if (key != nullptr) {
    const auto number = NumberOf(key);
    if (!number) return std::string("IMPI_AUTH_KEY is not a number of 64 bits");  // and not shown: it is a secret
    available.key = *number;
  }
  const bool none = get("IMPI_AUTH_NONE") != nullptr;
  for (const int method : wanted.empty() ? kAll : wanted) {
    const auto which = static_cast<AuthMethod>(method);
    const bool usable = (which == AuthMethod::kKey && key != nullptr) || (which == AuthMethod::kNone && none);
    if (usable && !available.Has(which)) available.methods.push_back(which);
  }
  if (available.methods.empty()) return "no authentication method is available: " + advice;
  return available;
}

}  // namespace weft::impi
