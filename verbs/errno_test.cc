// The verbs that report by their result leave the same value in errno ("0 on success, or the value of errno on failure", ibv_*(3)): programs
// call perror() after a failure.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>

#include "verbs/testing/connected_pair.h"

namespace {

constexpr int kUntouched = 12345;

// `verb` fails with `expected` and says so in both ways.
void ExpectFailure(const char* what, int expected, const std::function<int()>& verb) {
  errno = kUntouched;
  const int result = verb();
  const int left = errno;
  EXPECT_EQ(result, expected) << what;
  EXPECT_EQ(left, result) << what;
}

class Errno : public testing::Test {
 protected:
  void SetUp() override {
    context_ = weft::verbs::testing::OpenLoopback();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    channel_ = ibv_create_comp_channel(context_);
    cq_ = ibv_create_cq(context_, 8, nullptr, channel_, 0);
    ibv_srq_init_attr receives = {};
    receives.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    srq_ = ibv_create_srq(pd_, &receives);
    ibv_qp_init_attr_ex attributes = {};
    attributes.send_cq = attributes.recv_cq = cq_;
    attributes.srq = srq_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {4, 4, 1, 1, 0};
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.pd = pd_;
    attributes.send_ops_flags = IBV_QP_EX_WITH_SEND;
    qp_ = ibv_create_qp_ex(context_, &attributes);
    mr_ = ibv_reg_mr(pd_, bytes_, sizeof bytes_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    mw_ = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
    for (const void* made : {static_cast<void*>(srq_), static_cast<void*>(qp_), static_cast<void*>(mr_), static_cast<void*>(mw_)}) {
      ASSERT_NE(made, nullptr);
    }
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_mw(mw_), 0);
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_destroy_qp(qp_), 0);
    EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  char bytes_[64] = {};
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_mw* mw_ = nullptr;
};

TEST_F(Errno, SaysWhyAnObjectIsBusy) {
  ExpectFailure("ibv_dealloc_pd", EBUSY, [&] { return ibv_dealloc_pd(pd_); });
  ExpectFailure("ibv_destroy_cq", EBUSY, [&] { return ibv_destroy_cq(cq_); });
  ExpectFailure("ibv_destroy_srq", EBUSY, [&] { return ibv_destroy_srq(srq_); });
  ExpectFailure("ibv_destroy_comp_channel", EBUSY, [&] { return ibv_destroy_comp_channel(channel_); });
}

TEST_F(Errno, SaysWhyAQueryIsRefused) {
  ibv_port_attr port;
  ExpectFailure("ibv_query_port", EINVAL, [&] { return ibv_query_port(context_, 9, &port); });
  ibv_gid_entry entry;
  ExpectFailure("ibv_query_gid_ex", EINVAL, [&] { return ibv_query_gid_ex(context_, 9, 0, &entry, 0); });
}

TEST_F(Errno, SaysWhyAChangeIsRefused) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  ExpectFailure("ibv_modify_qp", EINVAL, [&] { return ibv_modify_qp(qp_, &attributes, IBV_QP_STATE); });
  ibv_srq_attr size = {.max_wr = 1u << 30, .max_sge = 0, .srq_limit = 0};
  ExpectFailure("ibv_modify_srq", EINVAL, [&] { return ibv_modify_srq(srq_, &size, IBV_SRQ_MAX_WR); });
  ExpectFailure("ibv_resize_cq", EINVAL, [&] { return ibv_resize_cq(cq_, 1 << 30); });
  ibv_modify_cq_attr moderation = {};
  moderation.attr_mask = 1u << 31;
  ExpectFailure("ibv_modify_cq", EINVAL, [&] { return ibv_modify_cq(cq_, &moderation); });
  ibv_ece ece = {};
  ExpectFailure("ibv_set_ece", EINVAL, [&] { return ibv_set_ece(qp_, &ece); });
}

TEST_F(Errno, SaysWhyARequestIsNotPosted) {
  ibv_send_wr send = {}, *bad_send = nullptr;
  send.opcode = IBV_WR_SEND;
  ExpectFailure("ibv_post_send", EINVAL, [&] { return ibv_post_send(qp_, &send, &bad_send); });
  ibv_recv_wr receive = {}, *bad_receive = nullptr;
  ExpectFailure("ibv_post_recv", EINVAL, [&] { return ibv_post_recv(qp_, &receive, &bad_receive); });
  receive.num_sge = 99;
  ExpectFailure("ibv_post_srq_recv", EINVAL, [&] { return ibv_post_srq_recv(srq_, &receive, &bad_receive); });
  ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp_);
  ibv_wr_start(extended);
  ibv_wr_send(extended);
  ExpectFailure("ibv_wr_complete", EINVAL, [&] { return ibv_wr_complete(extended); });
  ibv_mw_bind bind = {};
  bind.bind_info = {mr_, reinterpret_cast<uintptr_t>(bytes_), sizeof bytes_, 1u << 30};
  ExpectFailure("ibv_bind_mw", EINVAL, [&] { return ibv_bind_mw(qp_, mw_, &bind); });
}

TEST_F(Errno, SaysThatSomethingIsNotSupported) {
  ibv_gid none = {};
  const bool datagrams = context_->device->transport_type == IBV_TRANSPORT_IB;
  const int expected = datagrams ? EINVAL : EOPNOTSUPP;
  ExpectFailure("ibv_attach_mcast", expected, [&] { return ibv_attach_mcast(qp_, &none, 0); });
  ExpectFailure("ibv_detach_mcast", expected, [&] { return ibv_detach_mcast(qp_, &none, 0); });
  ibv_wq_attr attributes = {};
  ibv_wq queue = {};
  queue.context = context_;
  ExpectFailure("ibv_modify_wq", EOPNOTSUPP, [&] { return ibv_modify_wq(&queue, &attributes); });
  ibv_sge element = {};
  ExpectFailure("ibv_advise_mr", EINVAL, [&] { return ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 30, &element, 1); });
}

TEST_F(Errno, SaysWhyDeviceMemoryIsNotReached) {
  ibv_alloc_dm_attr attributes = {.length = 64, .log_align_req = 0, .comp_mask = 0};
  ibv_dm* dm = ibv_alloc_dm(context_, &attributes);
  ASSERT_NE(dm, nullptr);
  char four[4];
  ExpectFailure("ibv_memcpy_to_dm", EFAULT, [&] { return ibv_memcpy_to_dm(dm, 64, four, 4); });
  ExpectFailure("ibv_memcpy_from_dm", EFAULT, [&] { return ibv_memcpy_from_dm(four, dm, 64, 4); });
  ibv_mr* region = ibv_reg_dm_mr(pd_, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  ExpectFailure("ibv_free_dm", EBUSY, [&] { return ibv_free_dm(dm); });
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

// It says that a queue is empty, not that something failed.
TEST_F(Errno, StaysWhenNothingFailed) {
  ibv_cq_init_attr_ex attributes = {};
  attributes.cqe = 4;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &attributes);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr how = {};
  errno = kUntouched;
  EXPECT_EQ(ibv_start_poll(cq, &how), ENOENT);
  EXPECT_EQ(errno, kUntouched);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  EXPECT_EQ(errno, kUntouched);
}

}  // namespace
