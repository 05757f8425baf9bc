#ifndef TRANSPORT_INTERFACES_H_
#define TRANSPORT_INTERFACES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/socket_address.h"

namespace weft::transport {

struct NetworkInterface {
  std::string name;
  uint32_t index = 0;    // as in a link-local address's scope
  uint32_t mtu = 0;      // bytes; 0 unknown
  bool up = false;       // the administrator wants it up
  bool running = false;  // and there is a carrier
  bool loopback = false;
  std::array<uint8_t, 6> mac{};          // zeros where there is none (loopback, tunnels)
  uint32_t speed_mbps = 0;               // 0 unknown
  std::vector<SocketAddress> addresses;  // port 0; IPv4 first, link-local IPv6 last and with its scope
};

// The interfaces of this network namespace that have an IPv4 or IPv6 address, by index. Needs no privilege; what /sys
// would add is left out where it is not mounted or shows another namespace. Empty when the kernel refuses.
std::vector<NetworkInterface> ListInterfaces();

}  // namespace weft::transport

#endif  // TRANSPORT_INTERFACES_H_
