#ifndef VERBS_TESTING_SELF_CONNECTED_H_
#define VERBS_TESTING_SELF_CONNECTED_H_

// Queue pairs that tests connect by ibv_modify_qp.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verbs/testing/connected_pair.h"

namespace weft::verbs::testing {

inline constexpr int kToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                       IBV_QP_MIN_RNR_TIMER;
inline constexpr int kToRts =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
inline constexpr size_t kBytes = 4096;

// One end: its own memory, completion queue and queue pair.
struct End {
  explicit End(ibv_context* context, ibv_qp_type type = IBV_QPT_RC, int access = -1, bool signal_all = true) : memory(kBytes) {
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
    if (access < 0) {
      access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), access);
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.cap = {16, 16, 4, 4, 64};
    attributes.qp_type = type;
    attributes.sq_sig_all = signal_all;
    qp = ibv_create_qp(pd, &attributes);
    EXPECT_NE(qp, nullptr);
    EXPECT_EQ(ToInit(qp), 0);
  }
  ~End() {
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  }

  int ToRtr(const End& peer, int mask = kToRtr) { return ToRtr(peer.qp->qp_num, mask); }
  int ToRtr(uint32_t number, int mask = kToRtr) {
    ibv_qp_attr a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = number;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 1;  // 10 us
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    EXPECT_EQ(ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid), 0);
    return ibv_modify_qp(qp, &a, mask);
  }
  int ToRts(uint8_t rnr_retry = 7, int mask = kToRts) {
    ibv_qp_attr a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = rnr_retry;
    a.max_rd_atomic = 4;
    return ibv_modify_qp(qp, &a, mask);
  }
  int ToState(ibv_qp_state state) {
    ibv_qp_attr a = {};
    a.qp_state = state;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE);
  }
  ibv_qp_state State() const {
    ibv_qp_attr a = {};
    ibv_qp_init_attr init = {};
    EXPECT_EQ(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
    return a.qp_state;
  }

  ibv_sge Element(size_t offset, uint32_t length) const { return ElementOf(mr, offset, length); }
  int Receive(size_t offset, uint32_t length, uint64_t id = 100) {
    ibv_sge element = Element(offset, length);
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = &element;
    wr.num_sge = 1;
    return ibv_post_recv(qp, &wr, &bad);
  }
  ibv_send_wr Request(ibv_wr_opcode opcode, ibv_sge* elements, int count, const End* target = nullptr, size_t offset = 0) const {
    ibv_send_wr wr = {};
    wr.wr_id = 1;
    wr.sg_list = elements;
    wr.num_sge = count;
    wr.opcode = opcode;
    if (target != nullptr) {
      wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(target->memory.data()) + offset;
      wr.wr.rdma.rkey = target->mr->rkey;
    }
    return wr;
  }
  int Post(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  int Send(size_t offset, uint32_t length, uint64_t id = 1) {
    ibv_sge element = Element(offset, length);
    ibv_send_wr wr = Request(IBV_WR_SEND, &element, 1);
    wr.wr_id = id;
    return Post(wr);
  }

  std::vector<uint8_t> memory;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
};

class SelfConnected : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(context_ = OpenLoopback(), nullptr); }
  void TearDown() override { EXPECT_EQ(ibv_close_device(context_), 0); }

  static void Connect(End& a, End& b, uint8_t rnr_retry = 7) {
    ASSERT_EQ(a.ToRtr(b), 0);
    ASSERT_EQ(b.ToRtr(a), 0);
    ASSERT_EQ(a.ToRts(rnr_retry), 0);
    ASSERT_EQ(b.ToRts(rnr_retry), 0);
  }
  // A message from `a` to `b`.
  static void ExpectMessage(End& a, End& b) {
    a.memory[0] = static_cast<uint8_t>(a.memory[0] + 1);
    ASSERT_EQ(b.Receive(64, 32), 0);
    ASSERT_EQ(a.Send(0, 32), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(b.memory[64], a.memory[0]);
  }

  ibv_context* context_ = nullptr;
};

// Posts three requests at `end`, each an RDMA Read or Write of memory of `target`: `first`, a bad one and a good one.
// Only the second may fail with an error of its own.
inline void ExpectTheSecondToBeBlamed(End& end, const End& target, ibv_wr_opcode first) {
  ibv_sge element = end.Element(0, 1024);
  ibv_send_wr good = end.Request(first, &element, 1, &target, 2048);
  ibv_send_wr bad = end.Request(IBV_WR_RDMA_WRITE, &element, 1, &target, 2048);
  bad.wr_id = 2;
  bad.wr.rdma.rkey ^= 0x100;
  ibv_send_wr late = good;
  late.wr_id = 3;
  good.next = &bad;
  bad.next = &late;
  ASSERT_EQ(end.Post(good), 0);
  constexpr ibv_wc_status kExpected[] = {IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR};
  for (uint64_t id = 1; id <= 3; ++id) {
    const ibv_wc wc = WaitForCompletion(end.cq);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, kExpected[id - 1]) << id;
  }
  EXPECT_EQ(end.State(), IBV_QPS_ERR);
}

}  // namespace weft::verbs::testing

#endif  // VERBS_TESTING_SELF_CONNECTED_H_
