#ifndef BASE_HOST_PORT_H_
#define BASE_HOST_PORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Host names with a number, as people and launchers write them.
namespace weft {

// A host with an optional number: "node7", "node7:4", "192.0.2.7:4", "[fd00::7]:4", "[fd00::7]", "fd00::7". The host of
// ":4" is empty. Neither part is checked.
struct HostAndNumber {
  std::string_view host;  // without brackets
  std::optional<std::string_view> number;
};
// nullopt: a bracket is not closed, or is followed by something other than ":".
std::optional<HostAndNumber> SplitHost(std::string_view text);

// A host with a required port. The last colon separates them, so an IPv6 address needs no brackets.
struct HostPort {
  std::string host;   // a name or an address, not empty, without brackets
  uint16_t port = 0;  // not 0
};
// nullopt: `text` has another form.
std::optional<HostPort> ParseHostPort(std::string_view text);

}  // namespace weft

#endif  // BASE_HOST_PORT_H_
