// Extended reliable connections (XRC): requests that name the shared receive queue that they are for.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "verbs/testing/connected_pair.h"
#include "verbs/testing/shown.h"

namespace weft::verbs {
namespace {

using testing::AwaitRefusals;
using testing::ElementOf;
using testing::OpenLoopback;
using testing::ToInit;
using testing::WaitForCompletion;

constexpr size_t kBytes = 4096;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

ibv_xrcd* OpenDomain(ibv_context* context, int fd = -1, int flags = O_CREAT) {
  ibv_xrcd_init_attr attributes = {};
  attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attributes.fd = fd;
  attributes.oflags = flags;
  return ibv_open_xrcd(context, &attributes);
}

// A shared receive queue with a protection domain, memory and completions of its own.
struct Receiver {
  Receiver(ibv_context* context, ibv_xrcd* xrcd) : memory(kBytes) {
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), kAccess);
    ibv_srq_init_attr_ex attributes = {};
    attributes.attr = {16, 4, 0};
    attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attributes.srq_type = IBV_SRQT_XRC;
    attributes.pd = pd;
    attributes.xrcd = xrcd;
    attributes.cq = cq;
    srq = ibv_create_srq_ex(context, &attributes);
    EXPECT_NE(srq, nullptr) << strerror(errno);
    if (srq != nullptr) {
      EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
    }
  }
  ~Receiver() {
    if (srq != nullptr) {
      EXPECT_EQ(ibv_destroy_srq(srq), 0);
    }
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  }
  int Receive(size_t offset, uint32_t length, uint64_t id = 100) {
    ibv_sge element = ElementOf(mr, offset, length);
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = &element;
    wr.num_sge = 1;
    return ibv_post_srq_recv(srq, &wr, &bad);
  }

  std::vector<uint8_t> memory;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_srq* srq = nullptr;
  uint32_t number = 0;
};

class Xrc : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(context_ = OpenLoopback(), nullptr);
    ASSERT_NE(xrcd_ = OpenDomain(context_), nullptr) << strerror(errno);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), kAccess);
    ASSERT_NE(receiver_ = CreateReceiver(), nullptr) << strerror(errno);
    ASSERT_NE(sender_ = CreateSender(), nullptr) << strerror(errno);
  }
  void TearDown() override {
    if (sender_ != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(sender_), 0);
    }
    if (receiver_ != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(receiver_), 0);
    }
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_xrcd(xrcd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  ibv_qp* CreateReceiver() {
    ibv_qp_init_attr_ex attributes = {};
    attributes.qp_type = IBV_QPT_XRC_RECV;
    attributes.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attributes.xrcd = xrcd_;
    return ibv_create_qp_ex(context_, &attributes);
  }
  ibv_qp* CreateSender() {
    ibv_qp_init_attr_ex attributes = {};
    attributes.qp_type = IBV_QPT_XRC_SEND;
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.pd = pd_;
    attributes.send_cq = cq_;
    attributes.cap = {16, 0, 4, 0, 64};
    attributes.sq_sig_all = 1;
    attributes.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    return ibv_create_qp_ex(context_, &attributes);
  }
  int ToRtr(ibv_qp* qp, const ibv_qp* peer) {
    ibv_qp_attr a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer->qp_num;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    EXPECT_EQ(ibv_query_gid(context_, 1, 0, &a.ah_attr.grh.dgid), 0);
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->qp_type == IBV_QPT_XRC_RECV) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return ibv_modify_qp(qp, &a, mask);
  }
  static int ToRts(ibv_qp* qp) {
    ibv_qp_attr a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = 4;
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
    if (qp->qp_type == IBV_QPT_XRC_SEND) mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return ibv_modify_qp(qp, &a, mask);
  }
  void Connect() {
    for (ibv_qp* qp : {receiver_, sender_}) ASSERT_EQ(ToInit(qp), 0);
    ASSERT_EQ(ToRtr(receiver_, sender_), 0);
    ASSERT_EQ(ToRtr(sender_, receiver_), 0);
    ASSERT_EQ(ToRts(receiver_), 0);
    ASSERT_EQ(ToRts(sender_), 0);
  }

  int Post(ibv_wr_opcode opcode, uint32_t srqn, ibv_sge element, const Receiver* remote = nullptr, uint64_t id = 1) {
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.sg_list = &element;
    wr.num_sge = 1;
    wr.imm_data = htonl(77);
    wr.qp_type.xrc.remote_srqn = srqn;
    if (remote != nullptr && opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {reinterpret_cast<uintptr_t>(remote->memory.data()), 5, 0, remote->mr->rkey};
    } else if (remote != nullptr) {
      wr.wr.rdma = {reinterpret_cast<uintptr_t>(remote->memory.data()), remote->mr->rkey};
    }
    return ibv_post_send(sender_, &wr, &bad);
  }
  int Send(uint32_t srqn, uint8_t value, uint64_t id = 1) {
    memory_[value] = value;
    return Post(IBV_WR_SEND, srqn, ElementOf(mr_, value, 1), nullptr, id);
  }
  ibv_wc_status SenderStatus() { return WaitForCompletion(cq_).status; }

  ibv_context* context_ = nullptr;
  ibv_xrcd* xrcd_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kBytes);
  ibv_qp *receiver_ = nullptr, *sender_ = nullptr;
};

TEST_F(Xrc, AttributesOfTheOtherHalfAreIgnored) {
  ASSERT_EQ(ToInit(sender_), 0);
  ibv_qp_attr a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = receiver_->qp_num;
  a.ah_attr.port_num = 1;
  a.max_dest_rd_atomic = 1;
  EXPECT_EQ(ibv_modify_qp(sender_, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
}

TEST_F(Xrc, TheDeviceHasIt) {
  ibv_device_attr attributes;
  ASSERT_EQ(ibv_query_device(context_, &attributes), 0);
  EXPECT_NE(attributes.device_cap_flags & IBV_DEVICE_XRC, 0u);
}

TEST_F(Xrc, EachSendReachesTheSharedReceiveQueueThatItNames) {
  Receiver one(context_, xrcd_), two(context_, xrcd_);
  EXPECT_NE(one.number, two.number);
  Connect();
  uint8_t value = 1;
  for (Receiver* to : {&one, &two, &two, &one}) {
    ASSERT_EQ(to->Receive(8, 8, value), 0);
    ASSERT_EQ(Send(to->number, value), 0);
    EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
    const ibv_wc wc = WaitForCompletion(to->cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, value);
    EXPECT_EQ(wc.qp_num, receiver_->qp_num);
    EXPECT_EQ(to->memory[8], value);
    ++value;
  }
}

TEST_F(Xrc, ManyRequestsInARowKeepTheirTargets) {
  Receiver one(context_, xrcd_), two(context_, xrcd_);
  Connect();
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 8; ++i) {
      Receiver& to = i % 3 == 0 ? one : two;
      ASSERT_EQ(to.Receive(static_cast<size_t>(i), 1, static_cast<uint64_t>(i)), 0);
      ASSERT_EQ(Send(to.number, static_cast<uint8_t>(10 + i)), 0);
    }
    for (int i = 0; i < 8; ++i) {
      Receiver& to = i % 3 == 0 ? one : two;
      EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
      EXPECT_EQ(WaitForCompletion(to.cq).wr_id, static_cast<uint64_t>(i));
      EXPECT_EQ(to.memory[static_cast<size_t>(i)], 10 + i);
    }
  }
}

TEST_F(Xrc, TheNewWayToPost) {
  Receiver to(context_, xrcd_);
  Connect();
  ASSERT_EQ(to.Receive(0, 8), 0);
  memory_[0] = 9;
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(sender_);
  ASSERT_NE(ex, nullptr);
  ibv_wr_start(ex);
  ex->wr_id = 5;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(ex, htonl(3));
  ibv_wr_set_xrc_srqn(ex, to.number);
  ibv_wr_set_sge(ex, mr_->lkey, reinterpret_cast<uintptr_t>(memory_.data()), 1);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
  const ibv_wc wc = WaitForCompletion(to.cq);
  EXPECT_EQ(ntohl(wc.imm_data), 3u);
  EXPECT_EQ(to.memory[0], 9);
}

TEST_F(Xrc, RemoteMemoryIsThatOfTheProtectionDomainOfTheSharedReceiveQueue) {
  Receiver one(context_, xrcd_), two(context_, xrcd_);
  Connect();
  memory_[0] = 42;
  ASSERT_EQ(Post(IBV_WR_RDMA_WRITE, two.number, ElementOf(mr_, 0, 1), &two), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
  EXPECT_EQ(two.memory[0], 42);
  one.memory[0] = 24;
  ASSERT_EQ(Post(IBV_WR_RDMA_READ, one.number, ElementOf(mr_, 1, 1), &one), 0);
  ASSERT_EQ(Post(IBV_WR_ATOMIC_FETCH_AND_ADD, two.number, ElementOf(mr_, 8, 8), &two), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
  EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[1], 24);
  EXPECT_EQ(memory_[8], 42);
  EXPECT_EQ(two.memory[0], 47);
  ASSERT_EQ(one.Receive(0, 0), 0);
  ASSERT_EQ(Post(IBV_WR_RDMA_WRITE_WITH_IMM, one.number, ElementOf(mr_, 0, 1), &one), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
  EXPECT_EQ(WaitForCompletion(one.cq).opcode, IBV_WC_RECV_RDMA_WITH_IMM);

  ASSERT_EQ(Post(IBV_WR_RDMA_WRITE, one.number, ElementOf(mr_, 0, 1), &two), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(Xrc, AWrongNumberIsAnInvalidRequest) {
  Receiver to(context_, xrcd_);
  Connect();
  ASSERT_EQ(to.Receive(0, 8), 0);
  ASSERT_EQ(Send(to.number, 1, 1), 0);
  ASSERT_EQ(Send(to.number + 1000, 2, 2), 0);
  ASSERT_EQ(Send(to.number, 3, 3), 0);
  constexpr ibv_wc_status kExpected[] = {IBV_WC_SUCCESS, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR};
  for (uint64_t id = 1; id <= 3; ++id) {
    const ibv_wc wc = WaitForCompletion(cq_);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, kExpected[id - 1]) << id;
  }
  EXPECT_EQ(WaitForCompletion(to.cq).status, IBV_WC_SUCCESS);
  ibv_async_event event;
  do {
    ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
    ibv_ack_async_event(&event);
  } while (event.event_type == IBV_EVENT_COMM_EST);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(event.element.qp, receiver_);
}

TEST_F(Xrc, AnotherDomainsSharedReceiveQueueIsNoneOfThis) {
  ibv_xrcd* other = OpenDomain(context_);
  ASSERT_NE(other, nullptr);
  {
    Receiver to(context_, other);
    Connect();
    ASSERT_EQ(to.Receive(0, 8), 0);
    ASSERT_EQ(Send(to.number, 1), 0);
    EXPECT_EQ(SenderStatus(), IBV_WC_REM_INV_REQ_ERR);
  }
  EXPECT_EQ(ibv_close_xrcd(other), 0);
}

TEST_F(Xrc, ASharedReceiveQueueMayGoWhileQueuePairsStay) {
  Receiver stays(context_, xrcd_);
  Connect();
  uint32_t gone = 0;
  {
    Receiver to(context_, xrcd_);
    gone = to.number;
    ASSERT_EQ(to.Receive(0, 8), 0);
    ASSERT_EQ(Send(gone, 1), 0);
    EXPECT_EQ(WaitForCompletion(to.cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
    ASSERT_EQ(to.Receive(0, 8), 0);  // goes with it
  }
  ASSERT_EQ(stays.Receive(0, 8), 0);
  ASSERT_EQ(Send(stays.number, 2), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
  ASSERT_EQ(Send(gone, 3), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Xrc, ASendWaitsForItsReceiveAndThoseForOthersBehindIt) {
  Receiver one(context_, xrcd_), two(context_, xrcd_);
  Connect();
  ASSERT_EQ(two.Receive(0, 8), 0);
  ASSERT_EQ(Send(one.number, 1), 0);
  ASSERT_EQ(Send(two.number, 2), 0);
  ASSERT_TRUE(AwaitRefusals(sender_));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(two.cq, 1, &wc), 0);
  ASSERT_EQ(one.Receive(0, 8), 0);
  EXPECT_EQ(WaitForCompletion(one.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(WaitForCompletion(two.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(one.memory[0], 1);
  EXPECT_EQ(two.memory[0], 2);
}

TEST_F(Xrc, TheLimitEventComesToTheSharedReceiveQueue) {
  Receiver to(context_, xrcd_);
  Connect();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(to.Receive(0, 8), 0);
  ibv_srq_attr limit = {0, 0, 3};
  ASSERT_EQ(ibv_modify_srq(to.srq, &limit, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(Send(to.number, 1), 0);
  ibv_async_event event;
  do {
    ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
    ibv_ack_async_event(&event);
  } while (event.event_type == IBV_EVENT_COMM_EST);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, to.srq);
}

TEST_F(Xrc, AReceivingQueuePairMayBeOpenedAgainAndLivesUntilAllAreGone) {
  Receiver to(context_, xrcd_);
  Connect();
  ibv_qp_open_attr attributes = {};
  attributes.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT;
  attributes.qp_num = receiver_->qp_num;
  attributes.xrcd = xrcd_;
  attributes.qp_type = IBV_QPT_XRC_RECV;
  attributes.qp_context = this;
  ibv_qp* again = ibv_open_qp(context_, &attributes);
  ASSERT_NE(again, nullptr) << strerror(errno);
  EXPECT_EQ(again->qp_num, receiver_->qp_num);
  EXPECT_EQ(again->qp_context, this);
  EXPECT_EQ(again->state, IBV_QPS_RTS);
  EXPECT_EQ(ibv_close_xrcd(xrcd_), EBUSY);
  ASSERT_EQ(ibv_destroy_qp(receiver_), 0);
  receiver_ = again;
  ASSERT_EQ(to.Receive(0, 8), 0);
  ASSERT_EQ(Send(to.number, 1), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);

  attributes.qp_num = sender_->qp_num;
  EXPECT_EQ(ibv_open_qp(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attributes.qp_num = receiver_->qp_num;
  attributes.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE;
  EXPECT_EQ(ibv_open_qp(context_, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Xrc, AllThatStandForAQueuePairHearItsEvents) {
  Receiver to(context_, xrcd_);
  Connect();
  ibv_qp_open_attr attributes = {};
  attributes.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  attributes.qp_num = receiver_->qp_num;
  attributes.xrcd = xrcd_;
  attributes.qp_type = IBV_QPT_XRC_RECV;
  ibv_qp* again = ibv_open_qp(context_, &attributes);
  ASSERT_NE(again, nullptr);
  ASSERT_EQ(Send(to.number + 1000, 2), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_REM_INV_REQ_ERR);
  int heard = 0;
  while (heard < 2) {
    ibv_async_event event;
    ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
    if (event.event_type == IBV_EVENT_QP_REQ_ERR) {
      ++heard;
      EXPECT_TRUE(event.element.qp == receiver_ || event.element.qp == again);
    }
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(ibv_destroy_qp(again), 0);
}

TEST_F(Xrc, QueuePairsOfOtherServicesDoNotConnect) {
  Receiver to(context_, xrcd_);
  ibv_qp_init_attr attributes = {};
  attributes.send_cq = attributes.recv_cq = cq_;
  attributes.cap = {16, 16, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  ibv_qp* rc = ibv_create_qp(pd_, &attributes);
  ASSERT_NE(rc, nullptr);
  ASSERT_EQ(ToInit(sender_), 0);
  ASSERT_EQ(ToInit(rc), 0);
  ASSERT_EQ(ToRtr(sender_, rc), 0);
  ibv_qp_attr a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = sender_->qp_num;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &a.ah_attr.grh.dgid), 0);
  ASSERT_EQ(ibv_modify_qp(rc, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
  ASSERT_EQ(ToRts(sender_), 0);
  ASSERT_EQ(Send(to.number, 1), 0);
  EXPECT_EQ(SenderStatus(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(ibv_destroy_qp(rc), 0);
}

TEST_F(Xrc, ReceivesAreOfTheSharedReceiveQueueAlone) {
  Connect();
  ibv_recv_wr receive = {}, *bad_receive = nullptr;
  for (ibv_qp* qp : {sender_, receiver_}) {
    EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
    EXPECT_EQ(bad_receive, &receive);
  }
  ibv_send_wr send = {}, *bad_send = nullptr;
  EXPECT_EQ(ibv_post_send(receiver_, &send, &bad_send), EINVAL);
  EXPECT_EQ(bad_send, &send);
}

TEST_F(Xrc, WhatIsMissingOrBusySaysSo) {
  ibv_xrcd_init_attr no_flags = {};
  no_flags.comp_mask = IBV_XRCD_INIT_ATTR_FD;
  no_flags.fd = -1;
  EXPECT_EQ(ibv_open_xrcd(context_, &no_flags), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(OpenDomain(context_, 12345), nullptr);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(ibv_close_xrcd(xrcd_), EBUSY);
  ibv_qp_init_attr_ex qp = {};
  qp.qp_type = IBV_QPT_XRC_RECV;
  qp.comp_mask = IBV_QP_INIT_ATTR_PD;
  qp.pd = pd_;
  qp.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  EXPECT_EQ(ibv_create_qp_ex(context_, &qp), nullptr);
  EXPECT_EQ(errno, EINVAL) << "no domain";
  ibv_srq_init_attr_ex srq = {};
  srq.attr = {16, 1, 0};
  srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD;
  srq.srq_type = IBV_SRQT_XRC;
  srq.pd = pd_;
  srq.xrcd = xrcd_;
  EXPECT_EQ(ibv_create_srq_ex(context_, &srq), nullptr);
  EXPECT_EQ(errno, EINVAL) << "no completion queue";
  Receiver to(context_, xrcd_);
  EXPECT_EQ(ibv_destroy_cq(to.cq), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(to.pd), EBUSY);
  ibv_qp_init_attr rc = {};
  rc.send_cq = rc.recv_cq = cq_;
  rc.srq = to.srq;
  rc.qp_type = IBV_QPT_RC;
  rc.cap = {1, 0, 1, 0, 0};
  EXPECT_EQ(ibv_create_qp(pd_, &rc), nullptr);
  EXPECT_EQ(errno, EINVAL) << "a shared receive queue of type XRC is for XRC alone";
}

TEST_F(Xrc, AFileNamesADomain) {
  char path[] = "/tmp/weft_xrcXXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(OpenDomain(context_, fd, 0), nullptr);
  EXPECT_EQ(errno, EAGAIN) << "there is none yet";
  ibv_xrcd* first = OpenDomain(context_, fd);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(OpenDomain(context_, fd, O_CREAT | O_EXCL), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_xrcd* second = OpenDomain(context_, fd, 0);
  ASSERT_NE(second, nullptr);
  {
    // A queue pair of the one reaches a shared receive queue of the other.
    std::swap(xrcd_, first);
    EXPECT_EQ(ibv_destroy_qp(receiver_), 0);
    receiver_ = CreateReceiver();
    Receiver to(context_, second);
    Connect();
    ASSERT_EQ(to.Receive(0, 8), 0);
    ASSERT_EQ(Send(to.number, 1), 0);
    EXPECT_EQ(SenderStatus(), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_destroy_qp(receiver_), 0);
    receiver_ = nullptr;
    std::swap(xrcd_, first);
  }
  EXPECT_EQ(ibv_close_xrcd(first), 0);
  EXPECT_EQ(ibv_close_xrcd(second), 0);
  EXPECT_EQ(OpenDomain(context_, fd, 0), nullptr);
  EXPECT_EQ(errno, EAGAIN) << "the last one is closed";
  close(fd);
  unlink(path);
}

}  // namespace
}  // namespace weft::verbs
