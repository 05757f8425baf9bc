#include "base/host_port.h"

#include <algorithm>
#include <charconv>

namespace weft {

std::optional<HostAndNumber> SplitHost(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    const std::string_view host = text.substr(1, end - 1), rest = text.substr(end + 1);
    if (rest.empty()) return HostAndNumber{host, std::nullopt};
    if (rest.front() != ':') return std::nullopt;
    return HostAndNumber{host, rest.substr(1)};
  }
  // More than one colon: an IPv6 address without a number.
  if (std::count(text.begin(), text.end(), ':') != 1) return HostAndNumber{text, std::nullopt};
  const size_t colon = text.find(':');
  return HostAndNumber{text.substr(0, colon), text.substr(colon + 1)};
}

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (host.empty() || error != std::errc() || stop != end || port == 0) return std::nullopt;
  return HostPort{std::string(host), port};
}

}  // namespace weft
