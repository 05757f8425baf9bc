#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

// What a device looks like in the persona that most verbs programs expect: InfiniBand's transport over Ethernet.
extern "C" int ibv_query_gid_type(ibv_context* context, uint8_t port, unsigned int index, unsigned int* type);

namespace {

class Roce : public testing::Test {
 protected:
  void SetUp() override {
    ibv_device** list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    for (int i = 0; list[i] != nullptr; ++i) {
      if (std::string(ibv_get_device_name(list[i])) == "weft_lo") device_ = list[i];
    }
    ibv_free_device_list(list);
    ASSERT_NE(device_, nullptr);
    context_ = ibv_open_device(device_);
    ASSERT_NE(context_, nullptr);
    ASSERT_EQ(ibv_query_port(context_, 1, &port_), 0);
  }
  void TearDown() override { EXPECT_EQ(ibv_close_device(context_), 0); }

  ibv_device* device_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_port_attr port_ = {};
};

TEST_F(Roce, IsAChannelAdapterOfInfiniBandTransportOverEthernet) {
  EXPECT_EQ(device_->node_type, IBV_NODE_CA);
  EXPECT_EQ(device_->transport_type, IBV_TRANSPORT_IB);
  EXPECT_EQ(port_.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_STREQ(device_->dev_path, (std::string("/sys/class/infiniband_verbs/") + device_->dev_name).c_str());
  EXPECT_EQ(std::string(device_->dev_name).substr(0, 6), "uverbs");
}

TEST_F(Roce, DeviceHasWhatDatagramsNeed) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  EXPECT_GT(device.max_ah, 0);
  EXPECT_GT(device.max_mcast_grp, 0);
  EXPECT_GT(device.max_mcast_qp_attach, 0);
}

// UCX 1.13 uses atomics of adapters that say this, and of no other.
TEST_F(Roce, AtomicsAreTheAdaptersAndMeetTheProcessors) {
  ibv_device_attr_ex device;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &device), 0);
  EXPECT_EQ(device.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
  EXPECT_EQ(device.pci_atomic_caps.fetch_add, IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP);
  EXPECT_EQ(device.pci_atomic_caps.compare_swap, IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP);
  EXPECT_EQ(device.pci_atomic_caps.swap, 0);
}

TEST_F(Roce, PortHasNoLidAndWantsTheGlobalHeader) {
  EXPECT_EQ(port_.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port_.phys_state, 5);
  EXPECT_EQ(port_.lid, 0);
  EXPECT_EQ(port_.sm_lid, 0);
  EXPECT_EQ(port_.lmc, 0);
  EXPECT_TRUE(port_.flags & IBV_QPF_GRH_REQUIRED);
  EXPECT_TRUE(port_.port_cap_flags & IBV_PORT_IP_BASED_GIDS);
  EXPECT_TRUE(port_.port_cap_flags & IBV_PORT_CM_SUP);
  EXPECT_GE(port_.active_mtu, IBV_MTU_256);
  EXPECT_LE(port_.active_mtu, port_.max_mtu);
}

TEST_F(Roce, OnlyPkeyIsTheDefaultOne) {
  ASSERT_EQ(port_.pkey_tbl_len, 1);
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context_, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, 0xffff), 0);
  EXPECT_EQ(ibv_get_pkey_index(context_, 1, 0x7fff), -1);
}

TEST_F(Roce, GidsAreVersion2AndTheFirstIsIpv4) {
  ibv_gid first;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &first), 0);
  const uint8_t loopback[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  EXPECT_EQ(memcmp(first.raw, loopback, sizeof loopback), 0);

  std::vector<ibv_gid_entry> entries(static_cast<size_t>(port_.gid_tbl_len));
  const ssize_t count = ibv_query_gid_table(context_, entries.data(), entries.size(), 0);
  ASSERT_GT(count, 0);
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<size_t>(i)];
    EXPECT_EQ(entry.gid_type, uint32_t{IBV_GID_TYPE_ROCE_V2});
    EXPECT_EQ(entry.port_num, 1u);
    unsigned int type = 7;
    ASSERT_EQ(ibv_query_gid_type(context_, 1, entry.gid_index, &type), 0);
    EXPECT_EQ(type, 1u) << "of sysfs: RoCE v2";
  }
}

TEST_F(Roce, PlacesBehindTheLastGidAreEmptyNotErrors) {
  const int last = port_.gid_tbl_len - 1;
  ibv_gid gid;
  memset(&gid, 0xff, sizeof gid);
  ASSERT_EQ(ibv_query_gid(context_, 1, last, &gid), 0);
  EXPECT_EQ(gid.global.interface_id, 0u);
  ibv_gid_entry entry;
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(last), &entry, 0), ENODATA);
  unsigned int type = 7;
  EXPECT_EQ(ibv_query_gid_type(context_, 1, static_cast<unsigned>(last), &type), 0);
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(ibv_query_gid_type(context_, 1, static_cast<unsigned>(last) + 1, &type), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
