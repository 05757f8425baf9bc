#include "pmi/launch/file_pattern.h"

#include <ctime>
#include <optional>

#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

// What stands for %`letter`; nothing: there is no such.
std::optional<std::string> ValueOf(char letter, const FileUser& user, bool timed) {
  switch (letter) {
    case 'r':
      return std::to_string(user.rank);
    case 'g':
      return std::to_string(user.job);
    case 'p':
      return std::to_string(user.proxy);
    case 'h':
      return user.host;
    case 't':
      return timed ? std::optional(std::to_string(time(nullptr))) : std::nullopt;
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

std::string ProblemOf(const std::string& pattern, bool timed) {
  for (size_t at = pattern.find('%'); at != std::string::npos; at = pattern.find('%', at + 2)) {
    if (at + 1 < pattern.size() && ValueOf(pattern[at + 1], {}, timed)) continue;
    return "'" + Printable(pattern.substr(at, 2)) + "' is unknown; %r is the rank, %g the job, %p the proxy, %h the host, " +
           (timed ? "%t the time, " : "") + "and %% a percent sign";
  }
  return {};
}

std::string Fill(const std::string& pattern, const FileUser& user, bool timed) {
  std::string text;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%' || at + 1 == pattern.size()) {
      text += pattern[at];
    } else {
      text += ValueOf(pattern[++at], user, timed).value_or("");
    }
  }
  return text;
}

}  // namespace

std::string ProblemOfFilePattern(const std::string& pattern) { return pattern.empty() ? "the name of the file is empty" : ProblemOf(pattern, false); }
std::string FileNameOf(const std::string& pattern, const FileUser& user) { return Fill(pattern, user, false); }
std::string ProblemOfLinePattern(const std::string& pattern) { return ProblemOf(pattern, true); }
std::string LabelOf(const std::string& pattern, const FileUser& user) { return Fill(pattern, user, true); }

}  // namespace weft::pmi
