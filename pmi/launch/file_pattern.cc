#include "pmi/launch/file_pattern.h"

#include <optional>

#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

// What stands for %`letter`; nothing: there is no such.
std::optional<std::string> ValueOf(char letter, const FileUser& user) {
  switch (letter) {
    case 'r':
      return std::to_string(user.rank);
    case 'g':
      return std::to_string(user.job);
    case 'p':
      return std::to_string(user.proxy);
    case 'h':
      return user.host;
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string ProblemOfFilePattern(const std::string& pattern) {
  if (pattern.empty()) return "the name of the file is empty";
  for (size_t at = pattern.find('%'); at != std::string::npos; at = pattern.find('%', at + 2)) {
    if (at + 1 < pattern.size() && ValueOf(pattern[at + 1], {})) continue;
    return "'" + Printable(pattern.substr(at, 2)) +
           "' has no meaning; %r is the rank, %g the job, %p the proxy, %h the host, and %% a percent sign";
  }
  return {};
}

std::string FileNameOf(const std::string& pattern, const FileUser& user) {
  std::string name;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%' || at + 1 == pattern.size()) {
      name += pattern[at];
    } else {
      name += ValueOf(pattern[++at], user).value_or("");
    }
  }
  return name;
}

}  // namespace weft::pmi
