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
  uint32_t index = 0;    // equals the scope of a link-local address
  uint32_t mtu = 0;      // bytes; 0: unknown
  bool up = false;       // administratively up
  bool running = false;  // ... and has a carrier
  bool loopback = false;
  std::array<uint8_t, 6> mac{};          // zeros if there is none (loopback, tunnels)
  uint32_t speed_mbps = 0;               // 0: unknown
  std::vector<SocketAddress> addresses;  // port 0; IPv4 first, link-local IPv6 last and with scope
};

// One IPv4 or IPv6 address of an interface.
struct InterfaceAddress {
  std::string label;     // name of the interface; an IPv4 address may have its own ("eth0:1")
  bool up = false;       // as above
  bool running = false;  // there is a carrier
  bool loopback = false;
  SocketAddress address;  // port 0; link-local IPv6 with its scope
};

// All addresses of this network namespace, in the kernel's order. Cheaper than ListInterfaces(). Empty if the kernel
// refuses.
std::vector<InterfaceAddress> ListAddresses();

// The interfaces of this network namespace that have an IPv4 or IPv6 address, by index. Needs no privilege. Data from
// /sys is missing if /sys is not mounted or shows another namespace. Empty if the kernel refuses.
std::vector<NetworkInterface> ListInterfaces();

}  // namespace weft::transport

#endif  // TRANSPORT_INTERFACES_H_
