#include "impi/run/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "impi/server/rendezvous.h"

namespace weft::impi {
namespace {

// Decimal, or hexadecimal behind 0x; all of the text.
std::optional<uint64_t> NumberOf(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int> NumberUpTo(std::string_view text, int most) {
  const std::optional<uint64_t> number = NumberOf(text);
  if (!number || *number > static_cast<uint64_t>(most)) return std::nullopt;
  return static_cast<int>(*number);
}

// "3,1-0": the numbers of methods, the preferred one first (section 2.3.3). A range may descend. nullopt: something else.
std::optional<std::vector<int>> MethodsOf(std::string_view list) {
  std::vector<int> methods;
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    std::string_view range = list.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
    const size_t hyphen = range.find('-');
    const auto first = NumberUpTo(range.substr(0, hyphen), kMostMethods - 1);
    const auto last = hyphen == std::string_view::npos ? first : NumberUpTo(range.substr(hyphen + 1), kMostMethods - 1);
    if (!first || !last) return std::nullopt;
    const int step = *first <= *last ? 1 : -1;
    for (int method = *first; method != *last + step; method += step) methods.push_back(method);
  }
  return methods;
}

}  // namespace

Result<ServerOptions, std::string> ParseServerOptions(const std::vector<std::string>& words, const EnvironmentReader& get) {
  ServerOptions options;
  std::vector<int> wanted = {static_cast<int>(AuthMethod::kKey), static_cast<int>(AuthMethod::kNone)};  // the stronger one first
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string& option = words[i];
    if (option != "-server" && option != "-port" && option != "-auth") return "unknown option '" + option + "'; -server, -port and -auth are known";
    if (i + 1 == words.size()) return option + " needs a value";
    const std::string& value = words[i + 1];
    if (option == "-server") {
      const auto clients = NumberUpTo(value, Rendezvous::kMostClients);
      if (!clients || *clients == 0) return "-server '" + value + "': not a number of clients; a job has 1 to 32";
      options.clients = *clients;
    } else if (option == "-port") {
      const auto port = NumberUpTo(value, UINT16_MAX);
      if (!port) return "-port '" + value + "': not a port; those are 0 (any) to 65535";
      options.port = static_cast<uint16_t>(*port);
    } else {
      const auto methods = MethodsOf(value);
      if (!methods) return "-auth '" + value + "': not a list of methods; for example 1,0 or 1-0: the key (1) before none (0)";
      wanted = *methods;
    }
  }
  if (options.clients == 0) return std::string("-server N: how many clients the job has");
  const char* key = get("IMPI_AUTH_KEY");
  if (key != nullptr) {
    const auto number = NumberOf(key);
    if (!number) return std::string("IMPI_AUTH_KEY is not a number of 64 bits");  // and not shown: it is a secret
    options.key = *number;
  }
  const bool none = get("IMPI_AUTH_NONE") != nullptr;
  for (const int method : wanted) {
    const bool available = (method == static_cast<int>(AuthMethod::kKey) && key != nullptr) || (method == static_cast<int>(AuthMethod::kNone) && none);
    const auto which = static_cast<AuthMethod>(method);
    if (available && std::find(options.methods.begin(), options.methods.end(), which) == options.methods.end()) options.methods.push_back(which);
  }
  if (options.methods.empty()) {
    return std::string("no authentication method is available: set IMPI_AUTH_KEY to a number that server and clients share, or IMPI_AUTH_NONE to let anybody in");
  }
  return options;
}

}  // namespace weft::impi
