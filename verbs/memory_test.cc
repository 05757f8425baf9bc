#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "verbs/testing/connected_pair.h"

// Memory regions of every kind, used through a connection: the server registers, the client writes, reads and sends.
namespace {

using weft::verbs::testing::Connected;
using weft::verbs::testing::ElementOf;
using weft::verbs::testing::OpenLoopback;
using weft::verbs::testing::ToInit;
using weft::verbs::testing::WaitForCompletion;

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    context_ = OpenLoopback();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    client_cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    server_cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    local_ = ibv_reg_mr(pd_, from_.data(), from_.size(), kAll);
    ASSERT_NE(local_, nullptr);
    client_ = MakeQp(client_cq_);
    server_ = MakeQp(server_cq_);
    connection_.emplace(client_, server_);
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }

  void TearDown() override {
    connection_.reset();
    EXPECT_EQ(ibv_destroy_qp(client_), 0);
    EXPECT_EQ(ibv_destroy_qp(server_), 0);
    EXPECT_EQ(ibv_dereg_mr(local_), 0);
    EXPECT_EQ(ibv_destroy_cq(client_cq_), 0);
    EXPECT_EQ(ibv_destroy_cq(server_cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_qp* MakeQp(ibv_cq* cq) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {16, 16, 2, 2, 0};
    attributes.sq_sig_all = 1;
    ibv_qp* qp = ibv_create_qp(pd_, &attributes);
    EXPECT_NE(qp, nullptr) << strerror(errno);
    EXPECT_EQ(ToInit(qp), 0);
    return qp;
  }

  ibv_wc_status Do(ibv_qp* qp, ibv_cq* cq, ibv_wr_opcode opcode, ibv_sge element, uint64_t address = 0, uint32_t rkey = 0) {
    ibv_send_wr wr = {};
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    return WaitForCompletion(cq).status;
  }
  // The client's Write of `text`, and its Read of as much, into from_ + 2048.
  ibv_wc_status Write(const char* text, uint64_t address, uint32_t rkey) {
    std::strcpy(from_.data(), text);
    return Do(client_, client_cq_, IBV_WR_RDMA_WRITE, ElementOf(local_, 0, static_cast<uint32_t>(std::strlen(text) + 1)), address,
              rkey);
  }
  ibv_wc_status Read(uint32_t length, uint64_t address, uint32_t rkey) {
    return Do(client_, client_cq_, IBV_WR_RDMA_READ, ElementOf(local_, 2048, length), address, rkey);
  }
  const char* WhatWasRead() { return from_.data() + 2048; }

  void PostReceive(ibv_sge element) {
    ibv_recv_wr wr = {};
    wr.sg_list = &element;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(server_, &wr, &bad), 0);
  }

  char* Map(size_t pages, int protection = PROT_READ | PROT_WRITE) {
    return static_cast<char*>(mmap(nullptr, pages * page_, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  static uint64_t AddressOf(const void* at) { return reinterpret_cast<uintptr_t>(at); }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq *client_cq_ = nullptr, *server_cq_ = nullptr;
  ibv_mr* local_ = nullptr;
  ibv_qp *client_ = nullptr, *server_ = nullptr;
  std::array<char, 4096> from_{};
  std::optional<Connected> connection_;
  size_t page_ = 0;
};

TEST_F(Memory, AnIovaIsTheAddressForBothKeys) {
  std::array<char, 256> bytes{};
  constexpr uint64_t kIova = 0x10000;
  ibv_mr* mr = ibv_reg_mr_iova(pd_, bytes.data(), bytes.size(), kIova, kAll);
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(Write("at an iova", kIova + 100, mr->rkey), IBV_WC_SUCCESS);
  ASSERT_EQ(Read(11, kIova + 100, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(bytes.data() + 100, "at an iova");
  PostReceive({kIova + 200, 20, mr->lkey});
  ASSERT_EQ(Do(client_, client_cq_, IBV_WR_SEND, ElementOf(local_, 0, 11)), IBV_WC_SUCCESS);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(bytes.data() + 200, "at an iova");
  EXPECT_EQ(Read(1, AddressOf(bytes.data()), mr->rkey), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, AZeroBasedRegionCountsFromItsStart) {
  std::array<char, 256> bytes{};
  ibv_mr* mr = ibv_reg_mr(pd_, bytes.data(), bytes.size(), kAll | IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(Write("from zero", 10, mr->rkey), IBV_WC_SUCCESS);
  ASSERT_EQ(Read(10, 10, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(WhatWasRead(), "from zero");
  EXPECT_STREQ(bytes.data() + 10, "from zero");
  EXPECT_EQ(Read(1, 256, mr->rkey), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, HintsAreTaken) {
  std::array<char, 64> bytes{};
  constexpr int kFlush = 1 << 8 | 1 << 9;  // IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT of newer headers
  for (int hint : {int{IBV_ACCESS_RELAXED_ORDERING}, int{IBV_ACCESS_HUGETLB}, kFlush, int{IBV_ACCESS_OPTIONAL_RANGE}}) {
    ibv_mr* mr = ibv_reg_mr_iova2(pd_, bytes.data(), bytes.size(), AddressOf(bytes.data()), static_cast<unsigned>(kAll | hint));
    ASSERT_NE(mr, nullptr) << hint;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  }
  EXPECT_EQ(ibv_reg_mr_iova2(pd_, bytes.data(), bytes.size(), 0, 1u << 15), nullptr) << "neither known nor optional";
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Memory, ReregistrationChangesWhatItsFlagsSay) {
  std::array<char, 64> first{}, second{};
  ibv_mr* mr = ibv_reg_mr(pd_, first.data(), first.size(), IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  const uint32_t old_key = mr->rkey;
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, second.data(), second.size(),
                         kAll),
            0);
  EXPECT_EQ(Write("moved", AddressOf(second.data()), mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(6, AddressOf(second.data()), mr->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(second.data(), "moved");
  ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, first.data(), first.size(), 0), 0);
  EXPECT_EQ(mr->rkey, old_key) << "as adapters leave it";
  EXPECT_EQ(Read(6, AddressOf(first.data()), mr->rkey), IBV_WC_SUCCESS) << "the rights stayed";
  EXPECT_EQ(Read(6, AddressOf(second.data()), mr->rkey), IBV_WC_REM_ACCESS_ERR) << "that is where it was";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, RefusedReregistrationLeavesTheRegionValid) {
  std::array<char, 64> bytes{};
  ibv_mr* mr = ibv_reg_mr(pd_, bytes.data(), bytes.size(), kAll | IBV_ACCESS_MW_BIND);
  ASSERT_NE(mr, nullptr);
  char* gone = Map(1);
  munmap(gone, page_);
  const auto expect_refused = [&](int flags, ibv_pd* pd, void* address, size_t length, int access, int error) {
    errno = 0;
    EXPECT_EQ(ibv_rereg_mr(mr, flags, pd, address, length, access), IBV_REREG_MR_ERR_INPUT) << flags;
    EXPECT_EQ(errno, error) << flags;
  };
  expect_refused(0, nullptr, nullptr, 0, 0, EINVAL);
  expect_refused(1 << 7, nullptr, nullptr, 0, 0, EINVAL);
  expect_refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 10, 0, EINVAL);
  expect_refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, bytes.data(), 0, 0, EINVAL);
  expect_refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, bytes.data(), 10, kAll, EINVAL);  // rights, but not the flag
  expect_refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, gone, page_, 0, EFAULT);
  expect_refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
  expect_refused(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0, EINVAL);
  ibv_context* other = OpenLoopback();
  ibv_pd* foreign = ibv_alloc_pd(other);
  expect_refused(IBV_REREG_MR_CHANGE_PD, foreign, nullptr, 0, 0, EINVAL);
  EXPECT_EQ(ibv_dealloc_pd(foreign), 0);
  EXPECT_EQ(ibv_close_device(other), 0);

  ibv_mw* window = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
  ibv_mw_bind bind = {};
  bind.bind_info = {mr, AddressOf(bytes.data()), 10, IBV_ACCESS_REMOTE_READ};
  ASSERT_EQ(ibv_bind_mw(server_, window, &bind), 0);
  ASSERT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  expect_refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll, EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);

  EXPECT_EQ(Read(1, AddressOf(bytes.data()), mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, TheDeviceSaysWhatItPagesOnDemand) {
  ibv_device_attr_ex attributes;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &attributes), 0);
  EXPECT_EQ(attributes.odp_caps.general_caps, uint64_t{IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT});
  constexpr uint32_t kRc =
      IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
  EXPECT_EQ(attributes.odp_caps.per_transport_caps.rc_odp_caps & kRc, kRc);
}

TEST_F(Memory, OnDemandMemoryMayComeAfterItsRegistration) {
  char* bytes = Map(2);
  munmap(bytes, 2 * page_);
  ibv_mr* mr = ibv_reg_mr(pd_, bytes, 2 * page_, kAll | IBV_ACCESS_ON_DEMAND);
  ASSERT_NE(mr, nullptr) << strerror(errno);
  ASSERT_EQ(mmap(bytes, page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), bytes);
  EXPECT_EQ(Write("paged in", AddressOf(bytes), mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(9, AddressOf(bytes), mr->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(bytes, "paged in");
  EXPECT_EQ(Read(static_cast<uint32_t>(2), AddressOf(bytes) + page_ - 1, mr->rkey), IBV_WC_REM_ACCESS_ERR) << "half of it is not there";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  munmap(bytes, page_);
}

class ImplicitMemory : public Memory {
 protected:
  void SetUp() override {
    Memory::SetUp();
    mr_ = ibv_reg_mr(pd_, nullptr, SIZE_MAX, kAll | IBV_ACCESS_ON_DEMAND);
    ASSERT_NE(mr_, nullptr) << strerror(errno);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    Memory::TearDown();
  }
  ibv_mr* mr_ = nullptr;
};

TEST_F(ImplicitMemory, IsAllOfTheAddressSpace) {
  std::array<char, 64> on_stack{};
  EXPECT_EQ(Write("anywhere", AddressOf(on_stack.data()), mr_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(9, AddressOf(on_stack.data()), mr_->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(on_stack.data(), "anywhere");
  char* mapped = Map(1);
  PostReceive({AddressOf(mapped), 64, mr_->lkey});
  EXPECT_EQ(Do(client_, client_cq_, IBV_WR_SEND, {AddressOf(on_stack.data()), 9, mr_->lkey}), IBV_WC_SUCCESS);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(mapped, "anywhere");
  munmap(mapped, page_);
}

TEST_F(ImplicitMemory, AReadOfWhatIsNotMappedIsAnError) {
  char* bytes = Map(1);
  munmap(bytes, page_);
  EXPECT_EQ(Read(8, AddressOf(bytes), mr_->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ImplicitMemory, AReadOfWhatMayNotBeReadIsAnError) {
  char* bytes = Map(1, PROT_NONE);
  EXPECT_EQ(Read(8, AddressOf(bytes), mr_->rkey), IBV_WC_REM_ACCESS_ERR);
  munmap(bytes, page_);
}

TEST_F(ImplicitMemory, AWriteToWhatMayNotBeWrittenIsAnError) {
  char* bytes = Map(1, PROT_READ);
  Write("not here", AddressOf(bytes), mr_->rkey);
  EXPECT_NE(Read(8, AddressOf(bytes), mr_->rkey), IBV_WC_SUCCESS) << "the connection is at an end";
  EXPECT_EQ(bytes[0], 0);
  munmap(bytes, page_);
}

TEST_F(ImplicitMemory, TheEndsOfTheAddressSpaceAreErrors) {
  EXPECT_EQ(Read(8, UINT64_MAX - 64, mr_->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ImplicitMemory, ASendOfWhatIsNotMappedIsAnError) {
  EXPECT_EQ(Do(client_, client_cq_, IBV_WR_SEND, {0, 8, mr_->lkey}), IBV_WC_LOC_PROT_ERR);
}

TEST_F(ImplicitMemory, AReceiveIntoWhatIsNotMappedIsAnError) {
  PostReceive({64, 8, mr_->lkey});
  Do(client_, client_cq_, IBV_WR_SEND, ElementOf(local_, 0, 8));
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(Memory, AllOfTheAddressSpaceIsOnDemandOnly) {
  EXPECT_EQ(ibv_reg_mr(pd_, nullptr, SIZE_MAX, kAll), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Memory, AdviceFetchesOnDemandMemory) {
  char* bytes = Map(4);
  ibv_mr* mr = ibv_reg_mr(pd_, bytes, 4 * page_, kAll | IBV_ACCESS_ON_DEMAND);
  ASSERT_NE(mr, nullptr);
  ibv_sge element = ElementOf(mr, page_, static_cast<uint32_t>(2 * page_));
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &element, 1), 0);
  std::array<unsigned char, 4> resident{};
  ASSERT_EQ(mincore(bytes, 4 * page_, resident.data()), 0);
  EXPECT_EQ(resident, (std::array<unsigned char, 4>{0, 1, 1, 0}));
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &element, 1), 0);
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, &element, 1), 0);

  EXPECT_EQ(ibv_advise_mr(pd_, static_cast<ibv_advise_mr_advice>(77), 0, &element, 1), ENOTSUP);
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 1 << 5, &element, 1), EINVAL);
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &element, 0), EINVAL);
  ibv_sge outside = ElementOf(mr, 3 * page_, static_cast<uint32_t>(page_ + 1));
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &outside, 1), EFAULT);
  outside.addr = AddressOf(bytes) - 1;
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &outside, 1), EFAULT);
  ibv_sge pinned = ElementOf(local_, 0, 8);
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &pinned, 1), EFAULT) << "not on demand";
  ASSERT_EQ(munmap(bytes + page_, page_), 0);
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &element, 1), EFAULT) << "not there";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  mr = ibv_reg_mr(pd_, bytes, page_, IBV_ACCESS_ON_DEMAND);
  element = ElementOf(mr, 0, 8);
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &element, 1), EPERM);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  munmap(bytes, 4 * page_);
}

TEST_F(Memory, ANullRegionReadsAsZeroesAndSwallowsWhatIsWritten) {
  ibv_mr* null = ibv_alloc_null_mr(pd_);
  ASSERT_NE(null, nullptr);
  std::array<char, 64> bytes;
  bytes.fill('x');
  ibv_mr* mr = ibv_reg_mr(pd_, bytes.data(), bytes.size(), kAll);
  PostReceive({0xdeadbeef, 1 << 20, null->lkey});  // any address will do
  ASSERT_EQ(Do(client_, client_cq_, IBV_WR_SEND, ElementOf(local_, 0, 4000)), IBV_WC_SUCCESS);
  const ibv_wc swallowed = WaitForCompletion(server_cq_);
  EXPECT_EQ(swallowed.status, IBV_WC_SUCCESS);
  EXPECT_EQ(swallowed.byte_len, 4000u);
  ASSERT_EQ(Do(client_, client_cq_, IBV_WR_RDMA_WRITE, {0, 32, null->lkey}, AddressOf(bytes.data()), mr->rkey), IBV_WC_SUCCESS);
  ASSERT_EQ(Read(1, AddressOf(bytes.data()), mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[31], 0);
  EXPECT_EQ(bytes[32], 'x');

  EXPECT_EQ(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(Read(1, 0, null->lkey), IBV_WC_REM_ACCESS_ERR) << "it has no remote key";
  EXPECT_EQ(ibv_dereg_mr(null), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Memory, DeviceMemoryIsCopiedRegisteredAndUsed) {
  ibv_device_attr_ex limits;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &limits), 0);
  ASSERT_GT(limits.max_dm_size, 0u);
  ibv_alloc_dm_attr attributes = {};
  attributes.length = 4096;
  attributes.log_align_req = 12;
  ibv_dm* dm = ibv_alloc_dm(context_, &attributes);
  ASSERT_NE(dm, nullptr) << strerror(errno);
  std::array<char, 16> in = {"in the device"}, out{};
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 100, in.data(), 16), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 4084, in.data(), 16), EFAULT);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 101, in.data(), 16), EFAULT) << "not aligned";
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 100, in.data(), 15), EFAULT) << "not aligned";
  EXPECT_EQ(ibv_memcpy_from_dm(out.data(), dm, 100, 16), 0);
  EXPECT_STREQ(out.data(), "in the device");
  EXPECT_EQ(ibv_memcpy_from_dm(out.data(), dm, UINT64_MAX - 3, 16), EFAULT);

  EXPECT_EQ(ibv_reg_dm_mr(pd_, dm, 0, 100, kAll), nullptr);
  EXPECT_EQ(errno, EINVAL) << "not zero-based";
  EXPECT_EQ(ibv_reg_dm_mr(pd_, dm, 1, 4096, kAll | IBV_ACCESS_ZERO_BASED), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_mr* mr = ibv_reg_dm_mr(pd_, dm, 100, 1000, kAll | IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(Read(14, 0, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(WhatWasRead(), "in the device");
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);

  attributes.length = limits.max_dm_size;
  EXPECT_EQ(ibv_alloc_dm(context_, &attributes), nullptr) << "some is in use";
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  dm = ibv_alloc_dm(context_, &attributes);
  ASSERT_NE(dm, nullptr);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  attributes.length = 0;
  EXPECT_EQ(ibv_alloc_dm(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Memory, ADmaBufIsRefused) {
  EXPECT_EQ(ibv_reg_dmabuf_mr(pd_, 0, page_, 0, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
