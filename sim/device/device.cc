#include "sim/device/device.h"

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/weft.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/settings.h"
#include "base/version.h"
#include "faults/injector.h"
#include "transport/interfaces.h"

namespace weft::sim {
namespace {

using transport::NetworkInterface;
using transport::SocketAddress;

constexpr size_t kGidTable = 256;
constexpr size_t kRoceGidTable = 32;  // at least: programs and /sys walk all of it

ibv_gid GidOf(const SocketAddress& address) {
  ibv_gid gid{};
  if (address.family() == AF_INET) {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(&gid.raw[12], &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
  } else {
    std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
  }
  return gid;
}

// Many programs take the first device: one that reaches other hosts comes first, one that works at all before one whose cable is out.
int Rank(const NetworkInterface& interface) {
  if (!interface.up || !interface.running) return 2;
  return interface.loopback ? 1 : 0;
}

// EUI-64 of the interface's MAC; where it has none (loopback), of its name.
uint64_t NodeGuid(const NetworkInterface& interface) {
  uint8_t guid[8] = {0, 0, 0, 0xff, 0xfe, 0, 0, 0};
  if (std::any_of(interface.mac.begin(), interface.mac.end(), [](uint8_t b) { return b != 0; })) {
    std::memcpy(guid, interface.mac.data(), 3);
    std::memcpy(guid + 5, interface.mac.data() + 3, 3);
    guid[0] ^= 2;
  } else {
    guid[0] = 0x02;  // locally administered
    for (size_t i = 0; i < interface.name.size(); ++i) guid[1 + i % 7] ^= static_cast<uint8_t>(interface.name[i]);
  }
  uint64_t value;
  std::memcpy(&value, guid, sizeof value);
  return value;
}

ibv_mtu MtuOf(uint32_t bytes) {
  if (bytes >= 4096) return IBV_MTU_4096;
  if (bytes >= 2048) return IBV_MTU_2048;
  if (bytes >= 1024) return IBV_MTU_1024;
  if (bytes >= 512) return IBV_MTU_512;
  return IBV_MTU_256;
}

// active_speed and active_width of ibv_query_port(3), the nearest pair for an Ethernet speed.
struct LinkRate {
  uint64_t mbps;
  uint8_t speed, width;
};
constexpr uint8_t kSdr = 1, kQdr = 4, kFdr10 = 8, kEdr = 32, kHdr = 64;
constexpr uint8_t k1x = 1, k4x = 2;
constexpr LinkRate kRates[] = {{1000, kSdr, k1x},   {10000, kFdr10, k1x}, {25000, kEdr, k1x}, {40000, kFdr10, k4x},
                               {50000, kHdr, k1x},  {100000, kEdr, k4x},  {200000, kHdr, k4x}};

// RoCE's, of which GIDs made from IP addresses are the mark; Linux's software iWARP RNIC's.
constexpr uint32_t kRoceCapabilities = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
constexpr uint32_t kIwarpCapabilities = IBV_PORT_CM_SUP | IBV_PORT_REINIT_SUP | IBV_PORT_DEVICE_MGMT_SUP;

}  // namespace

ibv_node_type DeviceInfo::NodeType() const { return persona == Persona::kRoce ? IBV_NODE_CA : IBV_NODE_RNIC; }

ibv_transport_type DeviceInfo::Transport() const {
  return persona == Persona::kRoce ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
}

ibv_gid_type DeviceInfo::GidType() const {
  return persona == Persona::kRoce ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
}

int DeviceInfo::GidTableLength() const {
  const size_t least = persona == Persona::kRoce ? kRoceGidTable : 1;
  return static_cast<int>(std::min(std::max(gids.size(), least), kGidTable));
}

ibv_device_attr DeviceInfo::Attributes() const {
  ibv_device_attr a{};
  Version().copy(a.fw_ver, sizeof a.fw_ver - 1);
  a.node_guid = node_guid;
  a.sys_image_guid = node_guid;
  a.max_mr_size = kMaxMrSize;
  a.page_size_cap = 0xfffff000;
  a.vendor_id = WEFT_ECE_VENDOR_ID;
  a.vendor_part_id = 1;
  a.max_qp = kMaxQp;
  a.max_qp_wr = kMaxQpWr;
  a.device_cap_flags =
      IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_SRQ_RESIZE |
      IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  a.max_sge = kMaxSge;
  a.max_sge_rd = 1;  // the sink of a Read is one tagged buffer (RFC 5040 section 4.4)
  a.max_cq = kMaxCq;
  a.max_cqe = kMaxCqe;
  a.max_mr = kMaxMr;
  a.max_mw = kMaxMw;
  a.max_pd = kMaxPd;
  a.max_qp_rd_atom = kMaxReads;
  a.max_res_rd_atom = kMaxReads * 1024;
  a.max_qp_init_rd_atom = kMaxReads;
  // As RoCE adapters say it, which is what programs compare with (UCX 1.13 does); that the processor's own atomics may meet these is
  // in ibv_device_attr_ex::pci_atomic_caps.
  a.atomic_cap = persona == Persona::kRoce ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  a.max_srq = kMaxSrq;
  a.max_srq_wr = kMaxSrqWr;
  a.max_srq_sge = kMaxSge;
  if (persona == Persona::kRoce) {  // XRC, unreliable datagrams
    a.device_cap_flags |= IBV_DEVICE_XRC;
    a.max_ah = kMaxAh;
    a.max_mcast_grp = kMaxGroups;
    a.max_mcast_qp_attach = kMaxQp;
    a.max_total_mcast_qp_attach = kMaxGroups * kMaxQp;
  }
  a.max_pkeys = 1;
  a.phys_port_cnt = 1;
  return a;
}

bool DeviceInfo::UpNow() const { return linked && !faults::PortIsDown(name.c_str()); }

ibv_port_attr DeviceInfo::PortAttributes() const {
  ibv_port_attr a{};
  a.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  a.phys_state = up ? 5 : 3;  // LinkUp, Disabled
  a.max_mtu = IBV_MTU_4096;
  a.active_mtu = MtuOf(mtu);
  a.gid_tbl_len = GidTableLength();
  const bool roce = persona == Persona::kRoce;
  a.port_cap_flags = roce ? kRoceCapabilities : kIwarpCapabilities;
  a.flags = roce ? IBV_QPF_GRH_REQUIRED : 0;  // no LIDs over Ethernet: lid, sm_lid, lmc stay 0
  a.max_vl_num = roce ? 1 : 0;
  a.max_msg_sz = kMaxMessage;
  a.pkey_tbl_len = 1;
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  LinkRate best = kRates[1];
  for (const LinkRate& rate : kRates) {
    if (speed_mbps != 0 && rate.mbps <= speed_mbps) best = rate;
  }
  a.active_speed = best.speed;
  a.active_width = best.width;
  return a;
}

std::vector<DeviceInfo> ListDevices() {
  const std::vector<std::string>& wanted = ProcessSettings().devices;
  std::vector<DeviceInfo> devices;
  std::vector<NetworkInterface> interfaces = transport::ListInterfaces();
  std::stable_sort(interfaces.begin(), interfaces.end(), [](const auto& a, const auto& b) { return Rank(a) < Rank(b); });
  for (const NetworkInterface& interface : interfaces) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), interface.name) == wanted.end()) continue;
    DeviceInfo device;
    device.name = "weft_" + interface.name;
    if (device.name.size() >= IBV_SYSFS_NAME_MAX) device.name.resize(IBV_SYSFS_NAME_MAX - 1);
    device.interface = interface.name;
    device.persona = ProcessSettings().persona;
    device.interface_index = static_cast<int>(interface.index);
    device.node_guid = NodeGuid(interface);
    device.mtu = interface.mtu;
    device.linked = interface.up && interface.running;
    device.up = device.UpNow();
    device.speed_mbps = interface.speed_mbps;
    for (const SocketAddress& address : interface.addresses) {
      if (device.gids.size() == kGidTable) break;
      device.gids.push_back(GidOf(address));
      device.addresses.push_back(address);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace weft::sim
