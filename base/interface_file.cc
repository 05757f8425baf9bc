#include "base/interface_file.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace weft {
namespace {

constexpr size_t kLongestFile = 16 << 20;

// The next word of `line`, which is taken off; empty: there is none.
std::string_view TakeWord(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, std::min(line.find_first_of(kBlanks), line.size()));
  line.remove_prefix(word.size());
  return word;
}

// As text that is equal when the addresses are; nullopt: it is none.
std::optional<std::string> Canonical(const std::string& address) {
  uint8_t bytes[sizeof(in6_addr)];
  char text[INET6_ADDRSTRLEN];
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, address.c_str(), bytes) == 1) return inet_ntop(family, bytes, text, sizeof text);
  }
  return std::nullopt;
}

bool MayBeHost(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_'; });
}

}  // namespace

Result<std::vector<std::string>, std::string> AddressesInInterfaceFile(std::string_view text, std::string_view file,
                                                                       std::string_view host) {
  std::map<std::string, std::vector<std::string>, std::less<>> hosts;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto wrong = [&](std::string_view value, const char* what) {
      return std::string(file) + ":" + std::to_string(number) + ": '" + std::string(value.substr(0, 100)) + "' " + what;
    };
    const std::string name(TakeWord(line));
    if (name.empty()) continue;
    if (!MayBeHost(name)) return wrong(name, "is not a host name");
    const auto [at, is_new] = hosts.try_emplace(name);
    if (!is_new) return wrong(name, "already has a line");
    std::set<std::string> before;
    for (std::string word(TakeWord(line)); !word.empty(); word = TakeWord(line)) {
      const auto canonical = Canonical(word);
      if (!canonical) return wrong(word, "is not a numeric address");
      if (!before.insert(*canonical).second) return wrong(word, "appears twice");
      at->second.push_back(std::move(word));
    }
    if (at->second.empty()) return wrong(name, "has no address");
  }
  auto found = hosts.find(host);
  if (found == hosts.end()) found = hosts.find(host.substr(0, host.find('.')));
  if (found == hosts.end()) return std::string(file) + ": it has no line for this host, '" + std::string(host) + "'";
  return std::move(found->second);
}

Result<std::vector<std::string>, std::string> ReadInterfaceFile(const std::string& file) {
  const std::unique_ptr<FILE, int (*)(FILE*)> stream(std::fopen(file.c_str(), "re"), &std::fclose);
  if (stream == nullptr) return file + ": " + std::strerror(errno);
  std::string text;
  char part[65536];
  while (const size_t got = std::fread(part, 1, sizeof part, stream.get())) {
    text.append(part, got);
    if (text.size() > kLongestFile) return file + ": it is longer than " + std::to_string(kLongestFile) + " bytes";
  }
  if (std::ferror(stream.get())) return file + ": " + std::strerror(errno);
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  return AddressesInInterfaceFile(text, file, host);
}

}  // namespace weft
