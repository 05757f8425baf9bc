#ifndef BASE_HOST_PORT_H_
#define BASE_HOST_PORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Hosts with a number behind them, as people and launchers write them.
namespace weft {

// A host that may have a number: "node7", "node7:4", "192.0.2.7:4", "[fd00::7]:4", "[fd00::7]", "fd00::7". The host of
// ":4" is empty; neither part is looked into.
struct HostAndNumber {
  std::string_view host;  // without brackets
  std::optional<std::string_view> number;
};
// nullopt: a bracket that is not closed, or something else than ":" behind it.
std::optional<HostAndNumber> SplitHost(std::string_view text);

// A host that must have a port; the last colon is what parts them, so that an IPv6 address needs no brackets.
struct HostPort {
  std::string host;   // a name or an address, not empty, without brackets
  uint16_t port = 0;  // not 0
};
// nullopt: something else.
std::optional<HostPort> ParseHostPort(std::string_view text);

}  // namespace weft

#endif  // BASE_HOST_PORT_H_
