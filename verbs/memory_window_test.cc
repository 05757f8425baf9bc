#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "verbs/testing/connected_pair.h"

// Memory windows: the server binds, the client writes and reads through them.
namespace {

using weft::verbs::testing::Connected;
using weft::verbs::testing::ElementOf;
using weft::verbs::testing::OpenLoopback;
using weft::verbs::testing::ToInit;
using weft::verbs::testing::WaitForCompletion;

constexpr int kRegionAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
constexpr int kWindowAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

class MemoryWindows : public testing::Test {
 protected:
  void SetUp() override {
    context_ = OpenLoopback();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    client_cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    server_cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    local_ = ibv_reg_mr(pd_, from_.data(), from_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    region_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), kRegionAccess);
    ASSERT_NE(region_, nullptr);
    client_ = MakeQp(client_cq_);
    server_ = MakeQp(server_cq_);
    connection_.emplace(client_, server_);
  }

  void TearDown() override {
    connection_.reset();
    for (ibv_qp* qp : queue_pairs_) EXPECT_EQ(ibv_destroy_qp(qp), 0);
    for (ibv_mw* window : windows_) EXPECT_EQ(ibv_dealloc_mw(window), 0);
    EXPECT_EQ(ibv_dereg_mr(region_), 0);
    EXPECT_EQ(ibv_dereg_mr(local_), 0);
    EXPECT_EQ(ibv_destroy_cq(client_cq_), 0);
    EXPECT_EQ(ibv_destroy_cq(server_cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_qp* MakeQp(ibv_cq* cq) {
    ibv_qp_init_attr_ex attributes = {};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {16, 16, 1, 1, 64};
    attributes.sq_sig_all = 1;
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.pd = pd_;
    attributes.send_ops_flags =
        IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
    ibv_qp* qp = ibv_create_qp_ex(context_, &attributes);
    EXPECT_NE(qp, nullptr) << strerror(errno);
    queue_pairs_.push_back(qp);
    EXPECT_EQ(ToInit(qp), 0);
    return qp;
  }

  ibv_mw* Alloc(ibv_mw_type type) {
    ibv_mw* window = ibv_alloc_mw(pd_, type);
    EXPECT_NE(window, nullptr) << strerror(errno);
    EXPECT_EQ(window->type, type);
    windows_.push_back(window);
    return window;
  }

  ibv_mw_bind_info Info(size_t offset, uint64_t length, unsigned access = kWindowAccess) {
    return {region_, reinterpret_cast<uintptr_t>(memory_.data()) + offset, length, access};
  }

  int Bind1(ibv_mw* window, const ibv_mw_bind_info& info) {
    ibv_mw_bind bind = {};
    bind.wr_id = 100;
    bind.bind_info = info;
    return ibv_bind_mw(server_, window, &bind);
  }

  // Binds a window of type 2 on the server; the completion's status. On success the window has the new key.
  ibv_wc_status Bind2(ibv_mw* window, const ibv_mw_bind_info& info) {
    ibv_send_wr wr = {};
    wr.wr_id = 200;
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = window;
    wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    wr.bind_mw.bind_info = info;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(server_, &wr, &bad), 0);
    const ibv_wc completion = WaitForCompletion(server_cq_);
    if (completion.status == IBV_WC_SUCCESS) {
      window->rkey = wr.bind_mw.rkey;
      EXPECT_EQ(completion.opcode, IBV_WC_BIND_MW);
      EXPECT_EQ(completion.wr_id, 200u);
    }
    return completion.status;
  }

  ibv_wc_status Invalidate(ibv_qp* qp, ibv_cq* cq, uint32_t rkey) {
    ibv_send_wr wr = {};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = rkey;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    return WaitForCompletion(cq).status;
  }

  // An RDMA Write or Read of the client. On iWARP only a Read tells the initiator about an error of the target for sure.
  ibv_wc_status Access(ibv_wr_opcode opcode, uint64_t address, uint32_t length, uint32_t rkey) {
    ibv_sge element = ElementOf(local_, 0, length);
    ibv_send_wr wr = {};
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(client_, &wr, &bad), 0);
    return WaitForCompletion(client_cq_).status;
  }
  ibv_wc_status Read(uint64_t address, uint32_t length, uint32_t rkey) {
    return Access(IBV_WR_RDMA_READ, address, length, rkey);
  }
  // Write, and read back, so that it has arrived.
  ibv_wc_status WriteAndRead(uint64_t address, uint32_t length, uint32_t rkey) {
    const ibv_wc_status status = Access(IBV_WR_RDMA_WRITE, address, length, rkey);
    return status != IBV_WC_SUCCESS ? status : Read(address, length, rkey);
  }
  uint64_t At(size_t offset) { return reinterpret_cast<uintptr_t>(memory_.data()) + offset; }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq *client_cq_ = nullptr, *server_cq_ = nullptr;
  ibv_mr *local_ = nullptr, *region_ = nullptr;
  ibv_qp *client_ = nullptr, *server_ = nullptr;
  alignas(8) std::array<char, 4096> memory_{};
  std::array<char, 4096> from_{};
  std::vector<ibv_qp*> queue_pairs_;
  std::vector<ibv_mw*> windows_;
  std::optional<Connected> connection_;
};

TEST_F(MemoryWindows, TheDeviceSaysThatItHasThem) {
  ibv_device_attr limits;
  ASSERT_EQ(ibv_query_device(context_, &limits), 0);
  EXPECT_GT(limits.max_mw, 0);
  EXPECT_TRUE(limits.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
  EXPECT_TRUE(limits.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
  EXPECT_EQ(ibv_alloc_mw(pd_, static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(MemoryWindows, KeepTheirDomainBusy) {
  ibv_pd* pd = ibv_alloc_pd(context_);
  ibv_mw* window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(MemoryWindows, OfTypeOneOpenAPartOfARegion) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_1);
  const uint32_t first_key = window->rkey;
  ASSERT_EQ(Bind1(window, Info(1000, 100)), 0);
  EXPECT_NE(window->rkey, first_key);
  const ibv_wc bound = WaitForCompletion(server_cq_);
  EXPECT_EQ(bound.status, IBV_WC_SUCCESS);
  EXPECT_EQ(bound.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(bound.wr_id, 100u);
  std::strcpy(from_.data(), "through the window");
  EXPECT_EQ(WriteAndRead(At(1000), 100, window->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(memory_.data() + 1000, "through the window");
  EXPECT_EQ(Read(At(1000), 101, window->rkey), IBV_WC_REM_ACCESS_ERR) << "a byte behind the window";
}

TEST_F(MemoryWindows, OfTypeOneMoveWhenBoundAgain) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(Bind1(window, Info(0, 100)), 0);
  const uint32_t old_key = window->rkey;
  ASSERT_EQ(Bind1(window, Info(200, 100)), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Read(At(200), 100, window->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(region_), EBUSY);
  EXPECT_EQ(Read(At(0), 100, old_key), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, OfTypeOneAreUnboundByAnEmptyBind) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(Bind1(window, Info(0, 100)), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  const uint32_t key = window->rkey;
  ASSERT_EQ(Bind1(window, {nullptr, 0, 0, 0}), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(region_), 0) << "nothing is bound to it any more";
  region_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), kRegionAccess);
  EXPECT_EQ(Read(At(0), 1, key), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, OfTypeOneAreRefusedByTheHeaderRules) {
  ibv_mw *first = Alloc(IBV_MW_TYPE_1), *second = Alloc(IBV_MW_TYPE_2);
  EXPECT_EQ(Bind1(second, Info(0, 10)), EINVAL) << "type 2";
  EXPECT_EQ(Bind1(first, {nullptr, 1, 1, 0}), EINVAL);
  EXPECT_EQ(Bind1(first, Info(0, 10, IBV_ACCESS_HUGETLB)), EINVAL) << "not a right";
  ibv_pd* other = ibv_alloc_pd(context_);
  ibv_mw* foreign = ibv_alloc_mw(other, IBV_MW_TYPE_1);
  EXPECT_EQ(Bind1(foreign, Info(0, 10)), EPERM);
  EXPECT_EQ(ibv_dealloc_mw(foreign), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = first;
  wr.bind_mw.rkey = ibv_inc_rkey(first->rkey);
  wr.bind_mw.bind_info = Info(0, 10);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(server_, &wr, &bad), EINVAL) << "type 1";
  EXPECT_EQ(bad, &wr);
  wr.bind_mw.mw = nullptr;
  EXPECT_EQ(ibv_post_send(server_, &wr, &bad), EINVAL);
}

TEST_F(MemoryWindows, RightsAreTheWindowsOwn) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(Bind1(window, Info(0, 100, IBV_ACCESS_REMOTE_WRITE)), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Access(IBV_WR_RDMA_WRITE, At(0), 100, window->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(At(0), 100, window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, LocalRightsAreNoneOfTheirs) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(0, 100, IBV_ACCESS_LOCAL_WRITE)), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(At(0), 1, window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, ZeroBasedOnesCountFromTheirStart) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(Bind1(window, Info(512, 64, kWindowAccess | IBV_ACCESS_ZERO_BASED)), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  std::strcpy(from_.data(), "zero based");
  EXPECT_EQ(WriteAndRead(4, 60, window->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(memory_.data() + 516, "zero based");
  EXPECT_EQ(Read(4, 61, window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, AKeyOfAWindowIsNoLocalKey) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(Bind1(window, Info(0, 100)), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  ibv_sge element = {At(0), 10, window->rkey};
  ibv_send_wr wr = {};
  wr.sg_list = &element;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(server_, &wr, &bad), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(MemoryWindows, ARegionMustAllowBinding) {
  ibv_mr* plain = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ibv_mw_bind_info info = Info(0, 10);
  info.mr = plain;
  EXPECT_EQ(Bind2(window, info), IBV_WC_MW_BIND_ERR);
  ibv_qp_attr state;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(server_, &state, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(state.qp_state, IBV_QPS_ERR);
  EXPECT_EQ(ibv_dereg_mr(plain), 0);
}

TEST_F(MemoryWindows, AReadOnlyRegionGivesNoRightToWrite) {
  ibv_mr* read_only = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_MW_BIND);
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ibv_mw_bind_info info = Info(0, 10, IBV_ACCESS_REMOTE_READ);
  info.mr = read_only;
  EXPECT_EQ(Bind2(window, info), IBV_WC_SUCCESS);
  ibv_mw* other = Alloc(IBV_MW_TYPE_2);
  info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  EXPECT_EQ(Bind2(other, info), IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(ibv_dereg_mr(read_only), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
  windows_.erase(windows_.begin());
  EXPECT_EQ(ibv_dereg_mr(read_only), 0);
}

TEST_F(MemoryWindows, StayWithinTheirRegion) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  EXPECT_EQ(Bind2(window, Info(1, memory_.size())), IBV_WC_MW_BIND_ERR);
}

TEST_F(MemoryWindows, OfTypeTwoAreInvalidatedBeforeTheyAreBoundAgain) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(0, 100)), IBV_WC_SUCCESS);
  EXPECT_EQ(WriteAndRead(At(0), 100, window->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(region_), EBUSY);
  ASSERT_EQ(Invalidate(server_, server_cq_, window->rkey), IBV_WC_SUCCESS);
  ASSERT_EQ(Bind2(window, Info(100, 100)), IBV_WC_SUCCESS);
  EXPECT_EQ(WriteAndRead(At(100), 100, window->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(Bind2(window, Info(200, 100)), IBV_WC_MW_BIND_ERR) << "it is bound";
}

TEST_F(MemoryWindows, AnInvalidatedWindowIsShut) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(0, 100)), IBV_WC_SUCCESS);
  ASSERT_EQ(Invalidate(server_, server_cq_, window->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(At(0), 100, window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, ADeallocatedWindowIsShut) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(0, 100)), IBV_WC_SUCCESS);
  const uint32_t key = window->rkey;
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
  windows_.clear();
  EXPECT_EQ(Read(At(0), 100, key), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, OfTypeOneAreNotInvalidated) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_1);
  ASSERT_EQ(Bind1(window, Info(0, 100)), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Invalidate(server_, server_cq_, window->rkey), IBV_WC_MW_BIND_ERR);
}

// The rest of the key is the window's (IBTA volume 1 section 10.6.7.2.2), and programs leave it out. They find the whole in the window.
TEST_F(MemoryWindows, OfTypeTwoTakeTheLowEightBitsOfTheirNewKeyFromTheProgram) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  const uint32_t before = window->rkey, expected = (before & ~0xffu) | 0xba;
  ibv_mw_bind_info info = Info(0, 100);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = 0xba;
  wr.bind_mw.bind_info = info;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(server_, &wr, &bad), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(window->rkey, expected) << "the program gave a part of the key only";
  EXPECT_EQ(WriteAndRead(At(0), 100, expected), IBV_WC_SUCCESS);
  EXPECT_EQ(Invalidate(server_, server_cq_, expected), IBV_WC_SUCCESS);
}

TEST_F(MemoryWindows, OfTypeTwoAreNotInvalidatedByAnotherQueuePair) {
  ibv_qp *other_client = MakeQp(client_cq_), *other_server = MakeQp(server_cq_);
  Connected other(other_client, other_server);
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(0, 100)), IBV_WC_SUCCESS);
  EXPECT_EQ(Invalidate(other_server, server_cq_, window->rkey), IBV_WC_MW_BIND_ERR) << "Memory Management Operation Error";
  EXPECT_EQ(WriteAndRead(At(0), 100, window->rkey), IBV_WC_SUCCESS);
}

TEST_F(MemoryWindows, OfTypeTwoBelongToTheQueuePairThatBoundThem) {
  ibv_qp *other_client = MakeQp(client_cq_), *other_server = MakeQp(server_cq_);
  Connected other(other_client, other_server);
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(0, 100)), IBV_WC_SUCCESS);
  ibv_sge element = ElementOf(local_, 0, 10);
  ibv_send_wr wr = {};
  wr.sg_list = &element;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma.remote_addr = At(0);
  wr.wr.rdma.rkey = window->rkey;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(other_client, &wr, &bad), 0);
  EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(Read(At(0), 10, window->rkey), IBV_WC_SUCCESS);
}

TEST_F(MemoryWindows, ThePeerMayInvalidateOneOfTypeTwo) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(0, 100)), IBV_WC_SUCCESS);
  ibv_sge sink = ElementOf(region_, 1000, 10);
  ibv_recv_wr receive = {};
  receive.sg_list = &sink;
  receive.num_sge = 1;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(server_, &receive, &bad_receive), 0);
  ibv_sge element = ElementOf(local_, 0, 10);
  ibv_send_wr wr = {};
  wr.sg_list = &element;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.invalidate_rkey = window->rkey;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(client_, &wr, &bad), 0);
  EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
  const ibv_wc received = WaitForCompletion(server_cq_);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.invalidated_rkey, window->rkey);
  EXPECT_EQ(ibv_dereg_mr(region_), 0);
  region_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), kRegionAccess);
  EXPECT_EQ(Read(At(0), 10, window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, ABatchBindsAndTellsThePeerTheKey) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ibv_sge sink = ElementOf(local_, 100, 8);
  ibv_recv_wr receive = {};
  receive.sg_list = &sink;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(client_, &receive, &bad), 0);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(server_);
  ASSERT_NE(qp, nullptr);
  uint32_t key = ibv_inc_rkey(window->rkey);
  ibv_wr_start(qp);
  {
    const ibv_mw_bind_info info = Info(300, 100);
    ibv_wr_bind_mw(qp, window, key, &info);
  }
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, &key, sizeof key);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(WaitForCompletion(server_cq_).opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(WaitForCompletion(server_cq_).opcode, IBV_WC_SEND);
  EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
  uint32_t told = 0;
  std::memcpy(&told, from_.data() + 100, sizeof told);
  EXPECT_EQ(told, key);
  EXPECT_EQ(WriteAndRead(At(300), 100, told), IBV_WC_SUCCESS);
}

TEST_F(MemoryWindows, AtomicsGoThroughThem) {
  ibv_device_attr limits;
  ASSERT_EQ(ibv_query_device(context_, &limits), 0);
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ASSERT_EQ(Bind2(window, Info(64, 8, IBV_ACCESS_REMOTE_ATOMIC)), IBV_WC_SUCCESS);
  ibv_sge element = ElementOf(local_, 0, 8);
  ibv_send_wr wr = {};
  wr.sg_list = &element;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic.remote_addr = At(64);
  wr.wr.atomic.rkey = window->rkey;
  wr.wr.atomic.compare_add = 5;
  ibv_send_wr* bad = nullptr;
  if (limits.atomic_cap == IBV_ATOMIC_NONE) {  // the iwarp persona
    EXPECT_EQ(ibv_post_send(client_, &wr, &bad), EOPNOTSUPP);
    return;
  }
  ASSERT_EQ(ibv_post_send(client_, &wr, &bad), 0);
  EXPECT_EQ(WaitForCompletion(client_cq_).status, IBV_WC_SUCCESS);
  uint64_t sum = 0;
  std::memcpy(&sum, memory_.data() + 64, sizeof sum);
  EXPECT_EQ(sum, 5u);
  EXPECT_EQ(Read(At(64), 8, window->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MemoryWindows, AFlushedBindSaysSo) {
  ibv_mw* window = Alloc(IBV_MW_TYPE_2);
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(server_, &attributes, IBV_QP_STATE), 0);
  EXPECT_EQ(Bind2(window, Info(0, 10)), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ibv_dereg_mr(region_), 0) << "a flushed request binds nothing";
  region_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), kRegionAccess);
}

}  // namespace
