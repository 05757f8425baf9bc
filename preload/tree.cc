#include "preload/tree.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "preload/tree_writer.h"

// The layout is that of Linux 6.1, drivers/infiniband/core/{sysfs,device,uverbs_main,ucma}.c as /sys shows it.
namespace weft::preload {
namespace {

namespace fs = std::filesystem;
using sim::DeviceInfo;

constexpr unsigned kVerbsMajor = 231, kFirstVerbsMinor = 192;  // Documentation/admin-guide/devices.txt
constexpr unsigned kMiscMajor = 10, kCmMinor = 122;            // the connection manager's is given at random
constexpr int kVerbsAbi = 6, kCmAbi = 4;

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string GuidText(uint64_t guid) {
  const auto* b = reinterpret_cast<const uint8_t*>(&guid);
  return Format("%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
}

std::string GidText(const ibv_gid& gid) {
  std::string text;
  for (int i = 0; i < 16; i += 2) text += Format(i == 0 ? "%02x%02x" : ":%02x%02x", gid.raw[i], gid.raw[i + 1]);
  return text + "\n";
}

bool IsZero(const ibv_gid& gid) { return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0; }

// Of one lane, in tenths of Gb/s, by active_speed.
struct LaneRate {
  uint8_t speed;
  unsigned tenths;
  const char* name;
};
constexpr LaneRate kLaneRates[] = {{1, 25, ""},       {2, 50, " DDR"},  {4, 100, " QDR"},  {8, 100, " FDR10"},
                                   {16, 140, " FDR"}, {32, 250, " EDR"}, {64, 500, " HDR"}, {128, 1000, " NDR"}};

std::string RateText(const ibv_port_attr& port) {
  const int width = port.active_width == 1 ? 1 : port.active_width == 2 ? 4 : port.active_width == 4 ? 8 : 12;
  const LaneRate* lane = &kLaneRates[0];
  for (const LaneRate& rate : kLaneRates) {
    if (rate.speed == port.active_speed) lane = &rate;
  }
  const unsigned tenths = lane->tenths * static_cast<unsigned>(width);
  const std::string fraction = tenths % 10 != 0 ? Format(".%u", tenths % 10) : "";
  return Format("%u%s Gb/sec (%dX%s)\n", tenths / 10, fraction.c_str(), width, lane->name);
}

class DeviceTree {
 public:
  DeviceTree(TreeWriter& writer, const Machine& machine, const DeviceInfo& info, size_t number)
      : out_(writer), machine_(machine), info_(info), verbs_(Format("uverbs%zu", number)), number_(static_cast<unsigned>(number)) {}

  void Write() {
    WriteDevice();
    WritePort();
    WriteVerbs();
    const std::string below_net = "sys/class/net/" + info_.interface + "/device/";
    out_.Link(below_net + "infiniband/" + info_.name, "../../../../../devices/virtual/infiniband/" + info_.name);
    out_.Link(below_net + "infiniband_verbs/" + verbs_, "../../../../../devices/virtual/infiniband_verbs/" + verbs_);
  }

 private:
  void WriteDevice() {
    const ibv_device_attr device = info_.Attributes();
    const std::string folder = "sys/devices/virtual/infiniband/" + info_.name + "/";
    out_.Link("sys/class/infiniband/" + info_.name, "../../devices/virtual/infiniband/" + info_.name);
    out_.Link(folder + "subsystem", "../../../../class/infiniband");
    out_.File(folder + "uevent", "NAME=" + info_.name + "\n");
    out_.File(folder + "node_type", info_.NodeType() == IBV_NODE_RNIC ? "4: RNIC\n" : "1: CA\n");
    out_.File(folder + "node_guid", GuidText(device.node_guid));
    out_.File(folder + "sys_image_guid", GuidText(device.sys_image_guid));
    out_.File(folder + "node_desc", machine_.host_name + " " + info_.name + "\n");
    out_.File(folder + "fw_ver", std::string(device.fw_ver) + "\n");
    out_.File(folder + "hw_rev", Format("%x\n", device.hw_ver));
    out_.File(folder + "hca_type", "Weft\n");
    out_.File(folder + "board_id", "WEFT0000000001\n");
    WriteParent(folder + "device");
  }

  // `device` is the interface's own device where there is one, so that programs find its place on the bus; else a directory that
  // has what programs read of a device.
  void WriteParent(const std::string& path) {
    if (const std::string parent = ParentDevice(); !parent.empty()) return out_.Link(path, parent);
    const std::string folder = path + "/";
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    std::string mask;  // words of 32, the highest first
    for (unsigned left = cores; left > 0;) {
      const unsigned here = left % 32 != 0 ? left % 32 : 32;
      mask += (mask.empty() ? "" : ",") + Format("%08x", ~0u >> (32 - here));
      left -= here;
    }
    out_.File(folder + "numa_node", "-1\n");
    out_.File(folder + "local_cpus", mask + "\n");
    out_.File(folder + "local_cpulist", cores == 1 ? "0\n" : Format("0-%u\n", cores - 1));
    out_.File(folder + "vendor", Format("0x%06x\n", info_.Attributes().vendor_id));
    out_.File(folder + "device", Format("0x%04x\n", info_.Attributes().vendor_part_id));
    out_.Link(folder + "net/" + info_.interface, fs::absolute(machine_.net + "/" + info_.interface).string());
    out_.Link(folder + "infiniband/" + info_.name, "../..");
  }

  // Empty: a virtual interface, or /sys is another network namespace's.
  std::string ParentDevice() const {
    const std::string folder = machine_.net + "/" + info_.interface;
    int index = 0;
    if (!(std::ifstream(folder + "/ifindex") >> index) || index != info_.interface_index) return "";
    std::error_code error;
    const fs::path parent = fs::canonical(folder + "/device", error);
    return error ? "" : parent.string();
  }

  void WritePort() {
    const ibv_port_attr port = info_.PortAttributes();
    const std::string folder = "sys/devices/virtual/infiniband/" + info_.name + "/ports/1/";
    out_.File(folder + "state", port.state == IBV_PORT_ACTIVE ? "4: ACTIVE\n" : "1: DOWN\n");
    out_.File(folder + "phys_state", port.phys_state == 5 ? "5: LinkUp\n" : "3: Disabled\n");
    out_.File(folder + "link_layer", "Ethernet\n");
    out_.File(folder + "rate", RateText(port));
    out_.File(folder + "lid", Format("0x%x\n", port.lid));
    out_.File(folder + "lid_mask_count", Format("%d\n", port.lmc));
    out_.File(folder + "sm_lid", Format("0x%x\n", port.sm_lid));
    out_.File(folder + "sm_sl", Format("%d\n", port.sm_sl));
    out_.File(folder + "cap_mask", Format("0x%08x\n", port.port_cap_flags));
    out_.File(folder + "has_smi", "0\n");
    for (int i = 0; i < port.pkey_tbl_len; ++i) out_.File(folder + Format("pkeys/%d", i), "0xffff\n");
    WriteGids(folder, port.gid_tbl_len);
    WriteCounters(folder + "counters/");
  }

  // An empty place has a gid, which is zero, and no attributes.
  void WriteGids(const std::string& folder, int length) {
    const char* type = info_.GidType() == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2\n" : "IB/RoCE v1\n";
    out_.Directory(folder + "gid_attrs/types");
    out_.Directory(folder + "gid_attrs/ndevs");
    for (int i = 0; i < length; ++i) {
      const auto index = static_cast<size_t>(i);
      const ibv_gid gid = index < info_.gids.size() ? info_.gids[index] : ibv_gid{};
      out_.File(folder + Format("gids/%d", i), GidText(gid));
      if (IsZero(gid)) continue;
      out_.File(folder + Format("gid_attrs/types/%d", i), type);
      out_.File(folder + Format("gid_attrs/ndevs/%d", i), info_.interface + "\n");
    }
  }

  // The interface's, which carries all of the port's traffic among others'. Data in units of four bytes, as InfiniBand counts.
  void WriteCounters(const std::string& folder) {
    struct Counter {
      const char* name;
      const char* statistic;  // null: always 0
      unsigned unit;
    };
    static constexpr Counter kCounters[] = {
        {"port_rcv_data", "rx_bytes", 4},
        {"port_xmit_data", "tx_bytes", 4},
        {"port_rcv_packets", "rx_packets", 1},
        {"port_xmit_packets", "tx_packets", 1},
        {"unicast_rcv_packets", "rx_packets", 1},
        {"unicast_xmit_packets", "tx_packets", 1},
        {"multicast_rcv_packets", "multicast", 1},
        {"multicast_xmit_packets", nullptr, 1},
        {"port_rcv_errors", "rx_errors", 1},
        {"port_xmit_discards", "tx_dropped", 1},
        {"port_xmit_wait", nullptr, 1},
        {"port_rcv_remote_physical_errors", nullptr, 1},
        {"port_rcv_switch_relay_errors", nullptr, 1},
        {"port_rcv_constraint_errors", nullptr, 1},
        {"port_xmit_constraint_errors", nullptr, 1},
        {"symbol_error", nullptr, 1},
        {"link_error_recovery", nullptr, 1},
        {"link_downed", "carrier_down_count", 1},
        {"local_link_integrity_errors", nullptr, 1},
        {"excessive_buffer_overrun_errors", nullptr, 1},
        {"VL15_dropped", nullptr, 1},
    };
    const std::string statistics = machine_.net + "/" + info_.interface + "/statistics/";
    for (const Counter& counter : kCounters) {
      uint64_t value = 0;
      if (counter.statistic != nullptr) std::ifstream(statistics + counter.statistic) >> value;
      out_.File(folder + counter.name, std::to_string(value / counter.unit) + "\n");
    }
  }

  void WriteVerbs() {
    const std::string folder = "sys/devices/virtual/infiniband_verbs/" + verbs_ + "/";
    const unsigned minor_number = kFirstVerbsMinor + number_;
    out_.Link("sys/class/infiniband_verbs/" + verbs_, "../../devices/virtual/infiniband_verbs/" + verbs_);
    out_.Link(folder + "subsystem", "../../../../class/infiniband_verbs");
    out_.Link(folder + "device", "../../infiniband/" + info_.name + "/device");
    out_.File(folder + "ibdev", info_.name + "\n");
    out_.File(folder + "abi_version", "1\n");
    out_.File(folder + "dev", Format("%u:%u\n", kVerbsMajor, minor_number));
    out_.File(folder + "uevent", Format("MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/%s\n", kVerbsMajor, minor_number, verbs_.c_str()));
    out_.DeviceNode("dev/infiniband/" + verbs_, makedev(kVerbsMajor, minor_number));
  }

  TreeWriter& out_;
  const Machine& machine_;
  const DeviceInfo& info_;
  const std::string verbs_;
  const unsigned number_;
};

void WriteCm(TreeWriter& out) {
  const std::string folder = "sys/devices/virtual/misc/rdma_cm/";
  out.Link("sys/class/misc/rdma_cm", "../../devices/virtual/misc/rdma_cm");
  out.File(folder + "abi_version", Format("%d\n", kCmAbi));
  out.File(folder + "dev", Format("%u:%u\n", kMiscMajor, kCmMinor));
  out.File(folder + "uevent", Format("MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/rdma_cm\n", kMiscMajor, kCmMinor));
  out.Link(folder + "subsystem", "../../../../class/misc");
  out.DeviceNode("dev/infiniband/rdma_cm", makedev(kMiscMajor, kCmMinor));
}

}  // namespace

bool WriteTree(const std::string& root, const std::vector<DeviceInfo>& devices, const Machine& machine) {
  TreeWriter out(root);
  out.Directory("sys/class/infiniband");
  out.File("sys/class/infiniband_verbs/abi_version", Format("%d\n", kVerbsAbi));
  for (size_t i = 0; i < devices.size(); ++i) DeviceTree(out, machine, devices[i], i).Write();
  WriteCm(out);
  if (out.Failed() == 0) out.Finish();
  errno = out.Failed();
  return out.Failed() == 0;
}

}  // namespace weft::preload
