#include "preload/tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace weft::preload {
namespace {

namespace fs = std::filesystem;

class Tree : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/treeXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    machine_.net = root_ + ".net";
    machine_.host_name = "host";
    fs::create_directories(machine_.net + "/eth0/statistics");
    fs::create_directories(root_ + ".bus/0000:00:03.0");
    fs::create_symlink(root_ + ".bus/0000:00:03.0", machine_.net + "/eth0/device");
    std::ofstream(machine_.net + "/eth0/ifindex") << "4\n";
    std::ofstream(machine_.net + "/eth0/statistics/rx_bytes") << "4003\n";
  }
  void TearDown() override {
    for (const char* part : {"", ".net", ".bus"}) fs::remove_all(root_ + part);
  }

  sim::DeviceInfo Device(const std::string& interface, int index, Persona persona = Persona::kRoce) {
    sim::DeviceInfo info;
    info.name = "weft_" + interface;
    info.interface = interface;
    info.interface_index = index;
    info.persona = persona;
    info.node_guid = 0x0807060504030201;
    info.speed_mbps = 100000;
    ibv_gid gid = {};
    gid.raw[10] = gid.raw[11] = 0xff;
    gid.raw[12] = 10;
    gid.raw[15] = 1;
    info.gids.push_back(gid);
    info.addresses.emplace_back();
    return info;
  }

  bool Write(const std::vector<sim::DeviceInfo>& devices) { return WriteTree(root_, devices, machine_); }
  std::string Path(const std::string& path) { return root_ + path; }
  std::string Read(const std::string& path) {
    std::ifstream file(Path(path));
    if (!file) return "(not there)";
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string root_;
  Machine machine_;
};

TEST_F(Tree, ShowsADeviceAsTheKernelDoes) {
  ASSERT_TRUE(Write({Device("eth0", 4)}));
  const std::string device = "/sys/class/infiniband/weft_eth0/";
  EXPECT_EQ(fs::read_symlink(Path("/sys/class/infiniband/weft_eth0")), "../../devices/virtual/infiniband/weft_eth0");
  EXPECT_EQ(Read(device + "node_type"), "1: CA\n");
  EXPECT_EQ(Read(device + "node_guid"), "0102:0304:0506:0708\n");
  EXPECT_EQ(Read(device + "node_desc"), "host weft_eth0\n");
  const std::string port = device + "ports/1/";
  EXPECT_EQ(Read(port + "state"), "4: ACTIVE\n");
  EXPECT_EQ(Read(port + "phys_state"), "5: LinkUp\n");
  EXPECT_EQ(Read(port + "rate"), "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(Read(port + "link_layer"), "Ethernet\n");
  EXPECT_EQ(Read(port + "pkeys/0"), "0xffff\n");
  EXPECT_EQ(Read(port + "gids/0"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  EXPECT_EQ(Read(port + "gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_EQ(Read(port + "gid_attrs/types/0"), "RoCE v2\n");
  EXPECT_EQ(Read(port + "gid_attrs/ndevs/0"), "eth0\n");
  EXPECT_FALSE(fs::exists(Path(port + "gid_attrs/types/1")));
  EXPECT_EQ(Read(port + "counters/port_rcv_data"), "1000\n") << "words of four bytes";
}

TEST_F(Tree, AnIwarpDeviceIsAnRnic) {
  ASSERT_TRUE(Write({Device("eth0", 4, Persona::kIwarp)}));
  EXPECT_EQ(Read("/sys/class/infiniband/weft_eth0/node_type"), "4: RNIC\n");
  EXPECT_EQ(Read("/sys/class/infiniband/weft_eth0/ports/1/gid_attrs/types/0"), "IB/RoCE v1\n");
}

TEST_F(Tree, DeviceIsTheInterfacesWhereItHasOne) {
  ASSERT_TRUE(Write({Device("eth0", 4), Device("lo", 1)}));
  EXPECT_EQ(fs::canonical(Path("/sys/class/infiniband/weft_eth0/device")), root_ + ".bus/0000:00:03.0");
  EXPECT_EQ(Read("/sys/class/infiniband/weft_lo/device/numa_node"), "-1\n");
  EXPECT_TRUE(fs::is_symlink(Path("/sys/class/infiniband/weft_lo/device/net/lo")));
  EXPECT_TRUE(fs::equivalent(Path("/sys/class/infiniband/weft_lo/device/infiniband/weft_lo"), Path("/sys/class/infiniband/weft_lo")));
}

TEST_F(Tree, DeviceOfAnotherNamespacesInterfaceIsNotTaken) {
  ASSERT_TRUE(Write({Device("eth0", 7)}));
  EXPECT_FALSE(fs::is_symlink(Path("/sys/class/infiniband/weft_eth0/device")));
}

TEST_F(Tree, VerbsDevicesNameTheirDevice) {
  ASSERT_TRUE(Write({Device("lo", 1), Device("eth0", 4)}));
  EXPECT_EQ(Read("/sys/class/infiniband_verbs/abi_version"), "6\n");
  EXPECT_EQ(Read("/sys/class/infiniband_verbs/uverbs1/ibdev"), "weft_eth0\n");
  EXPECT_EQ(Read("/sys/class/infiniband_verbs/uverbs1/dev"), "231:193\n");
  EXPECT_EQ(Read("/sys/class/misc/rdma_cm/abi_version"), "4\n");
  EXPECT_TRUE(fs::equivalent(Path("/sys/class/infiniband_verbs/uverbs1/device"), Path("/sys/class/infiniband/weft_eth0/device")));
  EXPECT_TRUE(fs::equivalent(Path("/sys/class/net/eth0/device/infiniband/weft_eth0"), Path("/sys/class/infiniband/weft_eth0")));
}

TEST_F(Tree, NodesCarryTheirNumber) {
  ASSERT_TRUE(Write({Device("lo", 1)}));
  struct stat node;
  ASSERT_EQ(stat(Path("/dev/infiniband/uverbs0").c_str(), &node), 0);
  EXPECT_EQ(node.st_mode, mode_t{S_IFREG | S_ISVTX | 0666});
  EXPECT_EQ(static_cast<dev_t>(node.st_mtime), makedev(231, 192));
  EXPECT_TRUE(fs::exists(Path("/dev/infiniband/rdma_cm")));
}

TEST_F(Tree, FollowsWhatChanged) {
  sim::DeviceInfo device = Device("eth0", 4);
  ASSERT_TRUE(Write({device, Device("lo", 1)}));
  const std::string port = "/sys/class/infiniband/weft_eth0/ports/1/";
  const auto unchanged = fs::last_write_time(Path(port + "link_layer"));
  device.up = false;
  device.gids[0] = {};
  ASSERT_TRUE(Write({device}));
  EXPECT_EQ(Read(port + "state"), "1: DOWN\n");
  EXPECT_EQ(Read(port + "phys_state"), "3: Disabled\n");
  EXPECT_FALSE(fs::exists(Path(port + "gid_attrs/types/0")));
  EXPECT_FALSE(fs::exists(fs::symlink_status(Path("/sys/class/infiniband/weft_lo"))));
  EXPECT_FALSE(fs::exists(Path("/dev/infiniband/uverbs1")));
  EXPECT_EQ(fs::last_write_time(Path(port + "link_layer")), unchanged);
}

TEST_F(Tree, ALinkGivesWayToADirectoryAndBack) {
  for (int index : {4, 7, 4}) ASSERT_TRUE(Write({Device("eth0", index)})) << index;
  EXPECT_TRUE(fs::is_symlink(Path("/sys/class/infiniband/weft_eth0/device")));
}

TEST_F(Tree, WithoutDevicesTheClassIsEmpty) {
  ASSERT_TRUE(Write({}));
  EXPECT_TRUE(fs::is_empty(Path("/sys/class/infiniband")));
}

TEST_F(Tree, SaysWhyItCannotBeWritten) {
  root_ += "/none/such";
  EXPECT_FALSE(Write({}));
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace weft::preload
