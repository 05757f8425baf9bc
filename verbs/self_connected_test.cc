// Programs that connect their queue pairs themselves, by ibv_modify_qp with an exchanged number and GID, and what the RoCE persona
// promises them: InfiniBand's semantics.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "verbs/testing/connected_pair.h"

namespace weft::verbs {
namespace {

using testing::OpenLoopback;
using testing::ToInit;
using testing::WaitForCompletion;

constexpr int kToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                       IBV_QP_MIN_RNR_TIMER;
constexpr int kToRts =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr size_t kBytes = 4096;

// One end: its own memory, completion queue and queue pair.
struct End {
  explicit End(ibv_context* context, ibv_qp_type type = IBV_QPT_RC, int access = -1) : memory(kBytes) {
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
    attributes.sq_sig_all = 1;
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

  int ToRtr(const End& peer, int mask = kToRtr) {
    ibv_qp_attr a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer.qp->qp_num;
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

  ibv_sge Element(size_t offset, uint32_t length) const { return testing::ElementOf(mr, offset, length); }
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

TEST_F(SelfConnected, WhicheverSideIsFirst) {
  for (bool first : {true, false}) {
    End a(context_), b(context_);
    End& early = first ? a : b;
    End& late = first ? b : a;
    ASSERT_EQ(early.ToRtr(late), 0);
    ASSERT_EQ(early.ToRts(), 0);
    ASSERT_EQ(early.Send(0, 8), 0);  // waits for the other
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(late.Receive(0, 8), 0);
    ASSERT_EQ(late.ToRtr(early), 0);
    EXPECT_EQ(WaitForCompletion(late.cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(WaitForCompletion(early.cq).status, IBV_WC_SUCCESS);
    ASSERT_EQ(late.ToRts(), 0);
    ExpectMessage(late, early);
    ExpectMessage(early, late);
  }
}

TEST_F(SelfConnected, ManyPairsOfWhichEachKnowsItsOwn) {
  constexpr int kPairs = 300;  // more than one port's numbers
  std::vector<std::unique_ptr<End>> ends;
  for (int i = 0; i < 2 * kPairs; ++i) ends.push_back(std::make_unique<End>(context_));
  for (int i = 0; i < kPairs; ++i) Connect(*ends[static_cast<size_t>(i)], *ends[static_cast<size_t>(2 * kPairs - 1 - i)]);
  for (int i = 0; i < kPairs; ++i) {
    ends[static_cast<size_t>(i)]->memory[0] = static_cast<uint8_t>(i);
    ExpectMessage(*ends[static_cast<size_t>(i)], *ends[static_cast<size_t>(2 * kPairs - 1 - i)]);
  }
}

TEST_F(SelfConnected, AgainAfterReset) {
  End a(context_), b(context_);
  for (int life = 0; life < 5; ++life) {
    ASSERT_NO_FATAL_FAILURE(Connect(a, b));
    ExpectMessage(a, b);
    ExpectMessage(b, a);
    End& first = life % 2 ? a : b;
    End& second = life % 2 ? b : a;
    for (End* end : {&first, &second}) {
      ASSERT_EQ(end->ToState(IBV_QPS_RESET), 0);
      ASSERT_EQ(ToInit(end->qp), 0);
    }
  }
}

TEST_F(SelfConnected, IllegalTransitionsLeaveTheQueuePairAsItWas) {
  End a(context_), b(context_);
  for (int bit : {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER}) {
    EXPECT_EQ(a.ToRtr(b, kToRtr & ~bit), EINVAL) << bit;
    EXPECT_EQ(a.State(), IBV_QPS_INIT);
  }
  EXPECT_EQ(a.ToRtr(b, kToRtr | IBV_QP_TIMEOUT), EINVAL);
  EXPECT_EQ(a.ToRts(), EINVAL) << "from INIT";
  ASSERT_EQ(a.ToRtr(b), 0);
  for (int bit : {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC}) {
    EXPECT_EQ(a.ToRts(7, kToRts & ~bit), EINVAL) << bit;
    EXPECT_EQ(a.State(), IBV_QPS_RTR);
  }
  EXPECT_EQ(a.ToRts(8), EINVAL) << "three bits";
  EXPECT_EQ(a.ToRts(), 0);
  // RoCE has no LIDs but 0, which every port has: the own host's.
  ibv_qp_attr lid = {};
  lid.qp_state = IBV_QPS_RTR;
  lid.path_mtu = IBV_MTU_1024;
  lid.ah_attr.port_num = 1;
  lid.ah_attr.dlid = 1;
  EXPECT_EQ(ibv_modify_qp(b.qp, &lid, kToRtr), EINVAL);
  EXPECT_EQ(b.State(), IBV_QPS_INIT);
}

TEST_F(SelfConnected, WithoutAGidThePeerIsOnTheOwnHost) {
  End a(context_), b(context_);
  for (auto [end, peer] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    ibv_qp_attr to = {};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = IBV_MTU_1024;
    to.dest_qp_num = peer->qp->qp_num;
    to.max_dest_rd_atomic = 4;
    to.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(end->qp, &to, kToRtr), 0);
    ASSERT_EQ(end->ToRts(), 0);
  }
  ExpectMessage(a, b);
  ExpectMessage(b, a);
}

// A queue pair that is its own peer.
class ToItself : public SelfConnected {
 protected:
  void SetUp() override {
    SelfConnected::SetUp();
    end_ = std::make_unique<End>(context_);
    Connect(*end_);
  }
  void TearDown() override {
    end_.reset();
    SelfConnected::TearDown();
  }
  static void Connect(End& end) {
    ASSERT_EQ(end.ToRtr(end), 0);
    ASSERT_EQ(end.ToRts(), 0);
  }
  // Its completion and that of its receive come in any order.
  void ExpectMessageToItself() {
    end_->memory[0] = static_cast<uint8_t>(end_->memory[0] + 1);
    ASSERT_EQ(end_->Receive(64, 32), 0);
    ASSERT_EQ(end_->Send(0, 32), 0);
    bool sent = false, received = false;
    for (int i = 0; i < 2; ++i) {
      const ibv_wc wc = WaitForCompletion(end_->cq);
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      (wc.opcode & IBV_WC_RECV ? received : sent) = true;
    }
    EXPECT_TRUE(sent && received);
    EXPECT_EQ(end_->memory[64], end_->memory[0]);
  }

  std::unique_ptr<End> end_;
};

TEST_F(ToItself, Sends) {
  for (int i = 0; i < 100; ++i) ExpectMessageToItself();
}

TEST_F(ToItself, WritesReadsAndAtomics) {
  End& end = *end_;
  end.memory[0] = 5;
  ibv_sge element = end.Element(0, 8);
  ASSERT_EQ(end.Post(end.Request(IBV_WR_RDMA_WRITE, &element, 1, &end, 100)), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(end.memory[100], 5);
  ibv_sge sink = end.Element(200, 8);
  ASSERT_EQ(end.Post(end.Request(IBV_WR_RDMA_READ, &sink, 1, &end, 100)), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(end.memory[200], 5);
  ibv_sge found = end.Element(304, 8);
  ibv_send_wr add = end.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &found, 1);
  add.wr.atomic = {reinterpret_cast<uintptr_t>(end.memory.data()), 2, 0, end.mr->rkey};
  ASSERT_EQ(end.Post(add), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(end.memory[0], 7);
  EXPECT_EQ(end.memory[304], 5);
}

TEST_F(ToItself, MoreThanTheSocketHolds) {
  constexpr size_t kLarge = 32 << 20;
  std::vector<uint8_t> from(kLarge, 9), to(kLarge);
  End& end = *end_;
  ibv_mr* source = ibv_reg_mr(end.pd, from.data(), kLarge, 0);
  ibv_mr* target = ibv_reg_mr(end.pd, to.data(), kLarge, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ibv_sge element = testing::ElementOf(source, 0, kLarge);
  ibv_send_wr write = end.Request(IBV_WR_RDMA_WRITE, &element, 1);
  write.wr.rdma = {reinterpret_cast<uintptr_t>(to.data()), target->rkey};
  ASSERT_EQ(end.Post(write), 0);
  EXPECT_EQ(WaitForCompletion(end.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(from, to);
  EXPECT_EQ(ibv_dereg_mr(source), 0);
  EXPECT_EQ(ibv_dereg_mr(target), 0);
}

TEST_F(ToItself, ASendWaitsForItsReceive) {
  ASSERT_EQ(end_->Send(0, 8), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(end_->cq, 1, &wc), 0);
  ASSERT_EQ(end_->Receive(64, 8), 0);
  EXPECT_EQ(WaitForCompletion(end_->cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(WaitForCompletion(end_->cq).status, IBV_WC_SUCCESS);
}

TEST_F(ToItself, TheRequestToBlameIsTheOneThatFailed) {
  End& end = *end_;
  ibv_sge element = end.Element(0, 8);
  ibv_send_wr good = end.Request(IBV_WR_RDMA_WRITE, &element, 1, &end, 100);
  ibv_send_wr bad = good;
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

TEST_F(ToItself, AgainAfterReset) {
  for (int life = 0; life < 5; ++life) {
    ExpectMessageToItself();
    ASSERT_EQ(end_->ToState(IBV_QPS_RESET), 0);
    ASSERT_EQ(ToInit(end_->qp), 0);
    ASSERT_NO_FATAL_FAILURE(Connect(*end_));
  }
}

TEST_F(ToItself, AnUnreliableConnection) {
  end_ = std::make_unique<End>(context_, IBV_QPT_UC);
  ASSERT_EQ(end_->ToRtr(*end_, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN), 0);
  ASSERT_EQ(end_->ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ExpectMessageToItself();
}

TEST_F(SelfConnected, ImmediateDataComesWithSendsAndWrites) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ASSERT_EQ(b.Receive(0, 16), 0);
  ASSERT_EQ(b.Receive(16, 16), 0);
  std::memset(a.memory.data(), 7, 100);
  ibv_sge element = a.Element(0, 16);
  ibv_send_wr send = a.Request(IBV_WR_SEND_WITH_IMM, &element, 1);
  send.imm_data = htonl(0x01020304);
  ASSERT_EQ(a.Post(send), 0);
  ibv_wc wc = WaitForCompletion(b.cq);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(ntohl(wc.imm_data), 0x01020304u);
  EXPECT_EQ(wc.byte_len, 16u);
  EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_SEND);

  element = a.Element(0, 100);
  ibv_send_wr write = a.Request(IBV_WR_RDMA_WRITE_WITH_IMM, &element, 1, &b, 200);
  write.imm_data = htonl(0xfffefdfc);
  ASSERT_EQ(a.Post(write), 0);
  wc = WaitForCompletion(b.cq);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ntohl(wc.imm_data), 0xfffefdfcu);
  EXPECT_EQ(wc.byte_len, 100u);
  EXPECT_EQ(b.memory[200], 7);
  EXPECT_EQ(b.memory[299], 7);
  EXPECT_EQ(b.memory[16], 0) << "the receive's own memory is not touched";
  EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_RDMA_WRITE);
}

TEST_F(SelfConnected, AtomicsReturnWhatWasThere) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  auto* value = reinterpret_cast<uint64_t*>(b.memory.data());
  *value = 41;
  ibv_sge element = a.Element(8, 8);
  const auto* found = reinterpret_cast<const uint64_t*>(a.memory.data() + 8);
  ibv_send_wr wr = a.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &element, 1);
  wr.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(value);
  wr.wr.atomic.rkey = b.mr->rkey;
  wr.wr.atomic.compare_add = 1;
  ASSERT_EQ(a.Post(wr), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(*found, 41u);
  EXPECT_EQ(*value, 42u);

  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.swap = 99;
  for (uint64_t compare : {41u, 42u}) {
    wr.wr.atomic.compare_add = compare;
    ASSERT_EQ(a.Post(wr), 0);
    const ibv_wc wc = WaitForCompletion(a.cq);
    EXPECT_EQ(wc.opcode, IBV_WC_COMP_SWAP);
    EXPECT_EQ(wc.byte_len, 8u);
    EXPECT_EQ(*found, 42u);
    EXPECT_EQ(*value, compare == 42 ? 99u : 42u);
  }

  element.length = 4;
  EXPECT_EQ(a.Post(wr), EINVAL) << "eight bytes";
  element.length = 8;
  wr.wr.atomic.remote_addr += 4;  // not aligned: an error, and nothing is changed
  ASSERT_EQ(a.Post(wr), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_REM_OP_ERR);
  EXPECT_EQ(*value, 99u);
}

TEST_F(SelfConnected, AtomicsOfSeveralQueuePairsAndTheProcessorAddUp) {
  constexpr int kQueuePairs = 3, kEach = 400;
  End target(context_);
  auto* value = reinterpret_cast<uint64_t*>(target.memory.data());
  std::vector<std::unique_ptr<End>> sides, others;
  for (int i = 0; i < kQueuePairs; ++i) {
    sides.push_back(std::make_unique<End>(context_));
    others.push_back(std::make_unique<End>(context_));
    // All of the peers' regions are the same memory.
    ASSERT_EQ(ibv_dereg_mr(others.back()->mr), 0);
    others.back()->mr = ibv_reg_mr(others.back()->pd, value, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    ASSERT_NE(others.back()->mr, nullptr);
    Connect(*sides.back(), *others.back());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kQueuePairs; ++i) {
    threads.emplace_back([&, i] {
      End& side = *sides[static_cast<size_t>(i)];
      ibv_sge element = side.Element(0, 8);
      ibv_send_wr wr = side.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &element, 1);
      wr.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(value);
      wr.wr.atomic.rkey = others[static_cast<size_t>(i)]->mr->rkey;
      wr.wr.atomic.compare_add = 1;
      for (int n = 0; n < kEach; ++n) {
        EXPECT_EQ(side.Post(wr), 0);
        EXPECT_EQ(WaitForCompletion(side.cq).status, IBV_WC_SUCCESS);
      }
    });
  }
  for (int n = 0; n < kEach; ++n) __atomic_fetch_add(value, 1, __ATOMIC_SEQ_CST);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*value, static_cast<uint64_t>((kQueuePairs + 1) * kEach));
}

TEST_F(SelfConnected, ASendWaitsForItsReceiveAndWhatFollowsWaitsBehindIt) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  a.memory[0] = 1;
  a.memory[1] = 2;
  ASSERT_EQ(a.Send(0, 1, 11), 0);
  ibv_sge element = a.Element(1, 1);
  ibv_send_wr write = a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 500);
  write.wr_id = 12;
  ASSERT_EQ(a.Post(write), 0);
  ibv_sge sink = a.Element(1000, 1);
  ibv_send_wr read = a.Request(IBV_WR_RDMA_READ, &sink, 1, &b, 500);
  read.wr_id = 13;
  ASSERT_EQ(a.Post(read), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a.cq, 1, &wc), 0);
  EXPECT_EQ(b.memory[500], 0) << "nothing overtakes the Send";
  ASSERT_EQ(b.Receive(0, 1), 0);
  for (uint64_t id : {11u, 12u, 13u}) {
    wc = WaitForCompletion(a.cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, id);
  }
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.memory[0], 1);
  EXPECT_EQ(b.memory[500], 2);
  EXPECT_EQ(a.memory[1000], 2);
}

TEST_F(SelfConnected, WhileASendWaitsTheOtherDirectionGoesOn) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ASSERT_EQ(a.Send(0, 8), 0);  // b has no receive
  a.memory[300] = 5;
  ibv_sge sink = b.Element(300, 1);
  ASSERT_EQ(b.Post(b.Request(IBV_WR_RDMA_READ, &sink, 1, &a, 300)), 0);
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.memory[300], 5);
  ExpectMessage(b, a);
}

TEST_F(SelfConnected, ReceiverNotReadyIsGivenUpAfterRnrRetry) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b, /*rnr_retry=*/2));
  ASSERT_EQ(a.Send(0, 8, 1), 0);
  ASSERT_EQ(a.Send(0, 8, 2), 0);
  ibv_wc wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(wc.wr_id, 1u);
  wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.wr_id, 2u);
  EXPECT_EQ(a.State(), IBV_QPS_ERR);
  EXPECT_EQ(b.State(), IBV_QPS_RTS) << "the other end notices when it wants something";
}

TEST_F(SelfConnected, APeerThatIsGoneIsAnErrorOfTheNextRequest) {
  End a(context_);
  auto b = std::make_unique<End>(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, *b));
  ExpectMessage(a, *b);
  ASSERT_EQ(a.Receive(0, 8, 77), 0);
  b.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a.cq, 1, &wc), 0) << "nothing was asked of the peer yet";
  EXPECT_EQ(a.State(), IBV_QPS_RTS);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(a.Send(0, 8, 5), 0);
  wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_GT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(400)) << "it tries again, as an adapter does";
  wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.wr_id, 77u);
}

// ibv_srq_pingpong ends when it has what it needs, while its peer waits for more on other queue pairs.
TEST_F(SelfConnected, RequestsUnderWayWhenThePeerGoesFailAfterTheRetries) {
  End a(context_);
  auto b = std::make_unique<End>(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, *b));
  ASSERT_EQ(a.Send(0, 8, 5), 0);  // finds no receive
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  b.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a.cq, 1, &wc), 0);
  EXPECT_EQ(a.State(), IBV_QPS_RTS);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(a.State(), IBV_QPS_ERR);
}

TEST_F(SelfConnected, APeerThatNeverWasIsAnErrorAfterTheRetries) {
  End a(context_);
  ibv_qp_attr nobody = {};
  nobody.qp_state = IBV_QPS_RTR;
  nobody.path_mtu = IBV_MTU_1024;
  nobody.dest_qp_num = 9 << 8;  // the discard port: nobody listens
  nobody.ah_attr.is_global = 1;
  nobody.ah_attr.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &nobody.ah_attr.grh.dgid), 0);
  ASSERT_EQ(ibv_modify_qp(a.qp, &nobody, kToRtr), 0);
  ASSERT_EQ(a.ToRts(), 0);
  ASSERT_EQ(a.Send(0, 8), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(SelfConnected, TheSinkOfAReadNeedsOnlyLocalWriteAndMayBeInPieces) {
  End a(context_, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  for (size_t i = 0; i < 300; ++i) b.memory[i] = static_cast<uint8_t>(i);
  ibv_sge pieces[] = {a.Element(1000, 100), a.Element(0, 1), a.Element(500, 199)};
  ASSERT_EQ(a.Post(a.Request(IBV_WR_RDMA_READ, pieces, 3, &b, 0)), 0);
  const ibv_wc wc = WaitForCompletion(a.cq);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(a.memory[1099], 99);
  EXPECT_EQ(a.memory[0], 100);
  EXPECT_EQ(a.memory[500], 101);
  EXPECT_EQ(a.memory[698], static_cast<uint8_t>(299));
}

TEST_F(SelfConnected, TheRequestToBlameIsTheOneThatFailed) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ibv_sge element = a.Element(0, 8);
  ibv_send_wr good = a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 0);
  ibv_send_wr bad = good;
  bad.wr_id = 2;
  bad.wr.rdma.rkey ^= 0x100;
  ibv_send_wr late = good;
  late.wr_id = 3;
  good.next = &bad;
  bad.next = &late;
  ASSERT_EQ(a.Post(good), 0);
  constexpr ibv_wc_status kExpected[] = {IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR};
  for (uint64_t id = 1; id <= 3; ++id) {
    const ibv_wc wc = WaitForCompletion(a.cq);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, kExpected[id - 1]) << id;
  }
}

TEST_F(SelfConnected, TheQueuePairsAccessFlagsHold) {
  End a(context_), b(context_);
  ibv_qp_attr only_write = {};
  only_write.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  ASSERT_EQ(ibv_modify_qp(b.qp, &only_write, IBV_QP_ACCESS_FLAGS), 0);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ibv_sge element = a.Element(0, 8);
  ASSERT_EQ(a.Post(a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 0)), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  ASSERT_EQ(a.Post(a.Request(IBV_WR_RDMA_READ, &element, 1, &b, 0)), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SelfConnected, AnUnreliableConnectionDropsWhatFindsNoReceive) {
  End a(context_, IBV_QPT_UC), b(context_, IBV_QPT_UC);
  constexpr int kUcToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  ASSERT_EQ(a.ToRtr(b, kUcToRtr), 0);
  ASSERT_EQ(b.ToRtr(a, kUcToRtr), 0);
  ASSERT_EQ(a.ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ASSERT_EQ(b.ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  a.memory[0] = 1;
  ASSERT_EQ(a.Send(0, 1), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  ibv_sge element = a.Element(0, 1);  // with the wrong key: dropped as well
  ibv_send_wr write = a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 0);
  write.wr.rdma.rkey ^= 0x100;
  ASSERT_EQ(a.Post(write), 0);
  EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  // Something that surely comes behind both.
  a.memory[0] = 2;
  write = a.Request(IBV_WR_RDMA_WRITE, &element, 1, &b, 9);
  ASSERT_EQ(a.Post(write), 0);
  while (static_cast<volatile uint8_t*>(b.memory.data())[9] != 2) std::this_thread::yield();
  ASSERT_EQ(b.Receive(64, 1), 0);
  a.memory[0] = 3;
  ASSERT_EQ(a.Send(0, 1), 0);
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.memory[64], 3);
}

TEST_F(SelfConnected, AnUnreliableConnectionDoesNotMissItsPeer) {
  End a(context_, IBV_QPT_UC);
  auto b = std::make_unique<End>(context_, IBV_QPT_UC);
  constexpr int kUcToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  ASSERT_EQ(a.ToRtr(*b, kUcToRtr), 0);
  ASSERT_EQ(b->ToRtr(a, kUcToRtr), 0);
  ASSERT_EQ(a.ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ASSERT_EQ(b->ToRts(0, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  ExpectMessage(a, *b);
  b.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(a.Send(0, 8), 0);
    EXPECT_EQ(WaitForCompletion(a.cq).status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(a.State(), IBV_QPS_RTS);
}

TEST_F(SelfConnected, DrainedSendQueuesSaySo) {
  End a(context_), b(context_);
  ASSERT_NO_FATAL_FAILURE(Connect(a, b));
  ExpectMessage(a, b);
  ibv_qp_attr drain = {};
  drain.qp_state = IBV_QPS_SQD;
  drain.en_sqd_async_notify = 1;
  ASSERT_EQ(ibv_modify_qp(a.qp, &drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  ibv_async_event event;
  do {
    ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
    ibv_ack_async_event(&event);
  } while (event.event_type == IBV_EVENT_COMM_EST);
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(event.element.qp, a.qp);
  ASSERT_EQ(b.Receive(64, 1), 0);
  ASSERT_EQ(a.Send(0, 1), 0);  // waits
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(b.cq, 1, &wc), 0);
  ASSERT_EQ(a.ToState(IBV_QPS_RTS), 0);
  EXPECT_EQ(WaitForCompletion(b.cq).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weft::verbs
