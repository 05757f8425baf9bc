#ifndef SIM_DEVICE_DEVICE_H_
#define SIM_DEVICE_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "sim/device/limits.h"
#include "transport/socket_address.h"

namespace weft::sim {

// One RDMA device: a usable network interface (docs/architecture.md).
struct DeviceInfo {
  std::string name;             // "weft_lo"
  std::string interface;        // "lo"
  Persona persona = Persona::kRoce;
  int interface_index = 0;
  uint64_t node_guid = 0;       // network byte order, stable across processes on one host
  uint32_t mtu = 1500;
  bool linked = true;           // the interface is up and has a carrier
  bool up = true;               // ... and no injected fault has taken the port down
  uint64_t speed_mbps = 0;      // 0: unknown
  std::vector<ibv_gid> gids;    // IPv4-mapped or IPv6, in the order of `addresses`; zero: an empty entry
  std::vector<transport::SocketAddress> addresses;  // port 0

  // What a program sees before it opens the device: node type and transport depend on the persona.
  ibv_node_type NodeType() const;
  ibv_transport_type Transport() const;
  // As in the public API: IBV_GID_TYPE_IB for iWARP (the kernel's value), IBV_GID_TYPE_ROCE_V2.
  ibv_gid_type GidType() const;
  int GidTableLength() const;
  // The current value of `up`: injected faults come and go without an event of the interface.
  bool UpNow() const;

  ibv_device_attr Attributes() const;
  ibv_port_attr PortAttributes() const;
};

// The current devices of this machine (or namespace), limited by WEFT_DEVICES. Devices whose interfaces are up come
// first; among them the loopback device is the last. Otherwise in the order of the interfaces.
std::vector<DeviceInfo> ListDevices();

}  // namespace weft::sim

#endif  // SIM_DEVICE_DEVICE_H_
