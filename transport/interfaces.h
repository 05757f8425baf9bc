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

// One IPv4 or IPv6 address of an interface.
struct InterfaceAddress {
  std::string label;     // the interface's name; an IPv4 address may have one of its own ("eth0:1")
  bool up = false;       // as above
  bool running = false;  // there is a carrier
  bool loopback = false;
  SocketAddress address;  // port 0; link-local IPv6 with its scope
};

// All addresses of this network namespace, in the kernel's order. Looks at nothing else and so is the cheaper one.
// Empty when the kernel refuses.
std::vector<InterfaceAddress> ListAddresses();

// The interfaces of this network namespace that have an IPv4 or IPv6 address, by index. Needs no privilege; what /sys
// would add is left out where it is not mounted or shows another namespace. Empty when the kernel refuses.
std::vector<NetworkInterface> ListInterfaces();

}  // namespace weft::transport

#endif  // TRANSPORT_INTERFACES_H_
