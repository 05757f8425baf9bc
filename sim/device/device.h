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

// One RDMA device: a usable network interface (design: "Devices, addresses, personas").
struct DeviceInfo {
  std::string name;             // "weft_lo"
  std::string interface;        // "lo"
  Persona persona = Persona::kRoce;
  int interface_index = 0;
  uint64_t node_guid = 0;       // network byte order, stable across processes on one host
  uint32_t mtu = 1500;
  bool linked = true;           // the interface is up and has a carrier
  bool up = true;               // ... and no injected fault holds the port down
  uint64_t speed_mbps = 0;      // 0: not known
  std::vector<ibv_gid> gids;    // IPv4-mapped or IPv6, in the order of `addresses`; zero: an empty place
  std::vector<transport::SocketAddress> addresses;  // port 0

  // What a program sees of it before it opens it: node type and transport are the persona's.
  ibv_node_type NodeType() const;
  ibv_transport_type Transport() const;
  // As the public API has it: IBV_GID_TYPE_IB for iWARP (the kernel's value), IBV_GID_TYPE_ROCE_V2.
  ibv_gid_type GidType() const;
  int GidTableLength() const;
  // What `up` is now: injected faults come and go without news of the interface.
  bool UpNow() const;

  ibv_device_attr Attributes() const;
  ibv_port_attr PortAttributes() const;
};

// The devices of this machine (or namespace) now; WEFT_DEVICES narrows them. Those of interfaces that are up come first, the loopback's behind
// the others of them; else in the order of the interfaces.
std::vector<DeviceInfo> ListDevices();

}  // namespace weft::sim

#endif  // SIM_DEVICE_DEVICE_H_
