// What rdma-core has after release 44, as programs of newer distributions find it: by the symbol's version.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace weft::verbs {
namespace {

struct RegionAttributes {  // ibv_mr_init_attr
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  void* dmah;
  void* buf;
};
constexpr uint64_t kIova = 1, kAddr = 2, kFd = 4, kFdOffset = 8, kDmah = 16, kBuf = 32;

template <typename Function>
Function* Symbol(const char* name, const char* version) {
  void* found = dlvsym(RTLD_DEFAULT, name, version);
  EXPECT_NE(found, nullptr) << name << "@" << version;
  return reinterpret_cast<Function*>(found);
}

class VerbsNewer : public testing::Test {
 protected:
  void SetUp() override {
    list_ = ibv_get_device_list(nullptr);
    ASSERT_NE(list_, nullptr);
    context_ = ibv_open_device(list_[0]);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
    ibv_free_device_list(list_);
  }

  // nullptr expected, and `error` in errno.
  void Refuses(const RegionAttributes& attributes, int error) {
    errno = 0;
    ibv_mr* mr = reg_mr_ex_(pd_, &attributes);
    EXPECT_EQ(mr, nullptr);
    EXPECT_EQ(errno, error) << "comp_mask " << attributes.comp_mask;
    if (mr != nullptr) ibv_dereg_mr(mr);
  }

  ibv_device** list_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  using RegMrEx = ibv_mr*(ibv_pd*, const RegionAttributes*);
  RegMrEx* const reg_mr_ex_ = Symbol<RegMrEx>("ibv_reg_mr_ex", "IBVERBS_1.15");
};

TEST_F(VerbsNewer, RegistersMemoryByAttributes) {
  std::vector<char> memory(4096);
  RegionAttributes attributes{};
  attributes.length = memory.size();
  attributes.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
  attributes.comp_mask = kAddr;
  attributes.addr = memory.data();
  ibv_mr* mr = reg_mr_ex_(pd_, &attributes);
  ASSERT_NE(mr, nullptr) << strerror(errno);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->length, memory.size());
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  attributes.comp_mask |= kIova;
  attributes.iova = 0x1000;
  mr = reg_mr_ex_(pd_, &attributes);
  ASSERT_NE(mr, nullptr) << strerror(errno);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(VerbsNewer, RefusesWhatItCannotRegister) {
  std::vector<char> memory(4096);
  RegionAttributes attributes{};
  attributes.length = memory.size();
  attributes.access = IBV_ACCESS_LOCAL_WRITE;
  attributes.addr = memory.data();
  for (const auto& [mask, error] : {std::pair<uint64_t, int>{0, EINVAL},
                                    {kAddr | kFdOffset, EINVAL},
                                    {kAddr | kFd, EINVAL},
                                    {kFd, EINVAL},
                                    {kFd | kFdOffset | kIova, EOPNOTSUPP},
                                    {kAddr | kDmah, EOPNOTSUPP},
                                    {kAddr | uint64_t{1} << 40, EOPNOTSUPP}}) {
    attributes.comp_mask = mask;
    Refuses(attributes, error);
  }
}

TEST_F(VerbsNewer, BuffersAreAllocatedAndRegistered) {
  auto* alloc = Symbol<void*(ibv_pd*, size_t, void**)>("ibv_alloc_buf", "IBVERBS_1.17");
  auto* free_buf = Symbol<void(void*)>("ibv_free_buf", "IBVERBS_1.17");
  auto* reg = Symbol<ibv_mr*(ibv_pd*, void*, void*, size_t, int)>("ibv_reg_buf_mr", "IBVERBS_1.17");
  auto* to_fd = Symbol<int(void*)>("ibv_export_buf_dmabuf_fd", "IBVERBS_1.18");
  void* buffer = nullptr;
  auto* bytes = static_cast<char*>(alloc(pd_, 10000, &buffer));
  ASSERT_NE(bytes, nullptr) << strerror(errno);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 4096, 0U);
  ibv_mr* mr = reg(pd_, buffer, bytes + 100, 9900, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr) << strerror(errno);
  EXPECT_EQ(mr->addr, bytes + 100);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);

  ibv_pd* other = ibv_alloc_pd(context_);
  for (const auto& [pd, begin, length] : {std::tuple<ibv_pd*, char*, size_t>{pd_, bytes - 1, 10},
                                          {pd_, bytes + 100, 9901},
                                          {pd_, bytes + 10001, 0},
                                          {pd_, bytes, SIZE_MAX},
                                          {other, bytes, 100}}) {
    EXPECT_EQ(reg(pd, buffer, begin, length, IBV_ACCESS_LOCAL_WRITE), nullptr) << length;
    EXPECT_EQ(errno, EINVAL);
  }
  RegionAttributes attributes{};
  attributes.length = 100;
  attributes.addr = bytes;
  attributes.buf = buffer;
  for (const uint64_t mask : {kBuf, kBuf | kAddr | kFd, kBuf | kAddr | kFdOffset}) {
    attributes.comp_mask = mask;
    Refuses(attributes, EINVAL);
  }
  attributes.comp_mask = kBuf | kAddr | kIova;
  mr = reg_mr_ex_(pd_, &attributes);
  ASSERT_NE(mr, nullptr) << strerror(errno);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
  EXPECT_EQ(to_fd(buffer), -1);
  EXPECT_EQ(errno, ENODATA);
  free_buf(buffer);
  EXPECT_EQ(alloc(pd_, SIZE_MAX, &buffer), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(VerbsNewer, ThePortHasTheSpeedOfItsWidthAndLanes) {
  auto* query = Symbol<int(ibv_context*, uint32_t, uint64_t*)>("ibv_query_port_speed", "IBVERBS_1.16");
  uint64_t speed = 0;
  ASSERT_EQ(query(context_, 1, &speed), 0);
  EXPECT_GE(speed, 1U);  // 100 Mbit/s
  for (const uint32_t port : {0U, 2U, 257U}) {
    EXPECT_EQ(query(context_, port, &speed), EINVAL);
    EXPECT_EQ(errno, EINVAL);
  }
}

// A program compiled with other headers has shorter or longer structures than this build, and says how long they are.
TEST_F(VerbsNewer, QueriesFillTheRoomThatTheProgramHasAndNoMore) {
  constexpr size_t kRoom = 1024;
  const auto check = [](const char* what, size_t size, auto&& fill) {
    std::vector<unsigned char> room(kRoom, 0xee);
    EXPECT_EQ(fill(room.data(), size), 0) << what << " of " << size << " bytes";
    EXPECT_TRUE(std::all_of(room.begin() + static_cast<ptrdiff_t>(size), room.end(), [](unsigned char byte) { return byte == 0xee; }))
        << what << " of " << size << " bytes wrote more";
    return room;
  };
  const verbs_context* vctx = verbs_get_ctx(context_);
  ibv_device_attr_ex device;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &device), 0);
  const auto* device_bytes = reinterpret_cast<unsigned char*>(&device);
  for (size_t size = offsetof(ibv_device_attr_ex, comp_mask) + 4; size <= sizeof device + 64; size += 4) {
    const auto room = check("ibv_query_device_ex", size, [&](void* into, size_t length) {
      return vctx->query_device_ex(context_, nullptr, static_cast<ibv_device_attr_ex*>(into), length);
    });
    EXPECT_EQ(memcmp(room.data(), device_bytes, std::min(size, sizeof device)), 0);
    for (size_t i = sizeof device; i < size; ++i) EXPECT_EQ(room[i], 0) << "a field that this build does not know";
  }
  EXPECT_EQ(vctx->query_device_ex(context_, nullptr, &device, offsetof(ibv_device_attr_ex, comp_mask)), EINVAL);

  constexpr size_t kPort44 = 52, kPort49 = 56;  // active_speed_ex came with rdma-core 49
  for (const size_t size : {kPort44 - 4, kPort44, kPort49, kPort49 + 64}) {
    const auto room = check("ibv_query_port", size, [&](void* into, size_t length) {
      return vctx->query_port(context_, 1, static_cast<ibv_port_attr*>(into), length);
    });
    for (size_t i = kPort44; i < size; ++i) EXPECT_EQ(room[i], 0) << "a field that this build does not know";
  }
  for (const size_t size : {sizeof(ibv_gid_entry), sizeof(ibv_gid_entry) + 32}) {
    check("ibv_query_gid_ex", size, [&](void* into, size_t length) {
      return _ibv_query_gid_ex(context_, 1, 0, static_cast<ibv_gid_entry*>(into), 0, length);
    });
  }
}

TEST_F(VerbsNewer, BitsOfLaterReleasesAreRefused) {
  constexpr uint32_t kLater = 1u << 30;
  const auto refused = [](const char* what, const void* made) {
    EXPECT_EQ(made, nullptr) << what;
    EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << what << " " << errno;
    errno = 0;
  };
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  const verbs_context* vctx = verbs_get_ctx(context_);
  ibv_cq_init_attr_ex cq_attributes{};
  cq_attributes.cqe = 4;
  cq_attributes.comp_mask = kLater;
  refused("create_cq_ex", vctx->create_cq_ex(context_, &cq_attributes));
  ibv_qp_init_attr_ex qp_attributes{};
  qp_attributes.send_cq = qp_attributes.recv_cq = cq;
  qp_attributes.cap = {4, 4, 1, 1, 0};
  qp_attributes.qp_type = IBV_QPT_RC;
  qp_attributes.pd = pd_;
  qp_attributes.comp_mask = IBV_QP_INIT_ATTR_PD | kLater;
  refused("create_qp_ex", vctx->create_qp_ex(context_, &qp_attributes));
  constexpr uint64_t kFlush = 1 << 11, kAtomicWrite = 1 << 12;
  for (const uint64_t operation : {kFlush, kAtomicWrite, uint64_t{1} << 40}) {
    qp_attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    qp_attributes.send_ops_flags = IBV_QP_EX_WITH_SEND | operation;
    refused("an operation of later releases", vctx->create_qp_ex(context_, &qp_attributes));
  }
  ibv_srq_init_attr_ex srq_attributes{};
  srq_attributes.attr = {4, 1, 0};
  srq_attributes.pd = pd_;
  srq_attributes.comp_mask = IBV_SRQ_INIT_ATTR_PD | kLater;
  refused("create_srq_ex", vctx->create_srq_ex(context_, &srq_attributes));
  ibv_parent_domain_init_attr domain_attributes{};
  domain_attributes.pd = pd_;
  domain_attributes.comp_mask = 1 << 2;  // unprotected memory, rdma-core 64
  refused("alloc_parent_domain", vctx->alloc_parent_domain(context_, &domain_attributes));
  char byte = 0;
  refused("reg_mr", ibv_reg_mr_iova2(pd_, &byte, 1, 0, IBV_ACCESS_LOCAL_WRITE | 1u << 19));

  qp_attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  ibv_qp* qp = ibv_create_qp_ex(context_, &qp_attributes);
  ASSERT_NE(qp, nullptr) << strerror(errno);
  for (const int opcode : {13, 14, 15, 99}) {  // 14 flush, 15 atomic write
    ibv_send_wr request{}, *bad = nullptr;
    request.opcode = static_cast<ibv_wr_opcode>(opcode);
    EXPECT_NE(ibv_post_send(qp, &request, &bad), 0) << opcode;
    EXPECT_EQ(bad, &request);
  }
  EXPECT_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 1), 0) << "capabilities, rdma-core 46";
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(VerbsNewer, WhatThereIsNotSaysSo) {
  std::vector<uint64_t> attributes(16);
  uint64_t value = 0;
  auto* alloc_dmah = Symbol<void*(ibv_context*, void*)>("ibv_alloc_dmah", "IBVERBS_1.15");
  EXPECT_EQ(alloc_dmah(context_, attributes.data()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  auto* create = Symbol<void*(ibv_context*, void*)>("ibv_create_comp_cntr", "IBVERBS_1.18");
  errno = 0;
  EXPECT_EQ(create(context_, attributes.data()), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  auto* caps = Symbol<int(ibv_context*, void*, size_t)>("_ibv_query_comp_cntr_caps", "IBVERBS_1.18");
  EXPECT_EQ(caps(context_, attributes.data(), 16), EOPNOTSUPP);
  for (const char* name : {"ibv_set_comp_cntr", "ibv_set_err_comp_cntr", "ibv_inc_comp_cntr", "ibv_inc_err_comp_cntr"}) {
    EXPECT_EQ(Symbol<int(void*, uint64_t)>(name, "IBVERBS_1.18")(nullptr, 1), EOPNOTSUPP) << name;
  }
  for (const char* name : {"ibv_read_comp_cntr", "ibv_read_err_comp_cntr"}) {
    EXPECT_EQ(Symbol<int(void*, uint64_t*)>(name, "IBVERBS_1.18")(nullptr, &value), EOPNOTSUPP) << name;
  }
  EXPECT_EQ(Symbol<int(void*)>("ibv_destroy_comp_cntr", "IBVERBS_1.18")(nullptr), EOPNOTSUPP);
  EXPECT_EQ(Symbol<int(void*)>("ibv_dealloc_dmah", "IBVERBS_1.15")(nullptr), EOPNOTSUPP);
  EXPECT_EQ(Symbol<int(ibv_qp*, void*, void*)>("ibv_qp_attach_comp_cntr", "IBVERBS_1.18")(nullptr, nullptr, nullptr), EOPNOTSUPP);
  ibv_alloc_dm_attr dm_attributes{};
  dm_attributes.length = 64;
  ibv_dm* dm = ibv_alloc_dm(context_, &dm_attributes);
  ASSERT_NE(dm, nullptr);
  errno = 0;
  EXPECT_EQ(Symbol<int(ibv_dm*)>("ibv_dm_export_dmabuf_fd", "IBVERBS_1.16")(dm), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(VerbsNewer, PrivateCommandsFailAtEveryNode) {
  for (const char* node : {"IBVERBS_PRIVATE_34", "IBVERBS_PRIVATE_57", "IBVERBS_PRIVATE_59", "IBVERBS_PRIVATE_64", "IBVERBS_PRIVATE_65"}) {
    for (const char* name : {"ibv_cmd_create_cq_ex2", "ibv_cmd_reg_mr", "ibv_cmd_get_context", "execute_ioctl"}) {
      EXPECT_EQ(Symbol<int()>(name, node)(), EOPNOTSUPP) << name << "@" << node;
    }
    EXPECT_STREQ(Symbol<const char*(int)>("ibv_wr_opcode_str", node)(15), "atomic-write");
    EXPECT_STREQ(Symbol<const char*(int)>("ibv_wr_opcode_str", node)(13), "unknown");
    const std::string registering = std::string("verbs_register_driver_") + (strrchr(node, '_') + 1);
    Symbol<void(const void*)>(registering.c_str(), node)(nullptr);
  }
}

}  // namespace
}  // namespace weft::verbs
