// Faults at datagram queue pairs.
#include "tests/faults/program.h"

namespace weft::faults_test {
namespace {

using Events = std::multiset<ibv_event_type>;

constexpr uint32_t kKey = 0x1234, kRoom = 40 + 64;

// A queue pair of its own, with completion queues and receives, and an address handle for the own host.
struct End {
  void Make(ibv_context* context) {
    pd = ibv_alloc_pd(context);
    send_cq = ibv_create_cq(context, kDepth, nullptr, nullptr, 0);
    receive_cq = ibv_create_cq(context, kDepth, nullptr, nullptr, 0);
    mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = send_cq;
    attributes.recv_cq = receive_cq;
    attributes.cap = {kDepth, kDepth, 1, 1, 0};
    attributes.qp_type = IBV_QPT_UD;
    qp = ibv_create_qp(pd, &attributes);
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = kKey;
    ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    a.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    ibv_ah_attr to{};
    to.is_global = 1;
    to.port_num = 1;
    ASSERT_EQ(ibv_query_gid(context, 1, 0, &to.grh.dgid), 0);
    handle = ibv_create_ah(pd, &to);
    ASSERT_NE(handle, nullptr);
    for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(PostReceive(i), 0);
  }
  ~End() {
    ibv_destroy_ah(handle);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    ibv_dereg_mr(mr);
    EXPECT_EQ(ibv_destroy_cq(send_cq), 0);
    EXPECT_EQ(ibv_destroy_cq(receive_cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  }

  int PostReceive(uint64_t id) {
    ibv_sge element{reinterpret_cast<uint64_t>(memory), kRoom, mr->lkey};
    ibv_recv_wr wr{.wr_id = id, .sg_list = &element, .num_sge = 1}, *bad = nullptr;
    return ibv_post_recv(qp, &wr, &bad);
  }
  int Send(const End& to, uint64_t id) {
    ibv_send_wr wr{.wr_id = id, .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED}, *bad = nullptr;
    wr.imm_data = static_cast<uint32_t>(id);
    wr.wr.ud = {handle, to.qp->qp_num, kKey};
    return ibv_post_send(qp, &wr, &bad);
  }
  // Numbers of the datagrams that came.
  std::vector<uint32_t> Received(size_t count, milliseconds patience = milliseconds(kPatienceMs)) {
    std::vector<uint32_t> numbers;
    for (const ibv_wc& one : Pair::Poll(receive_cq, count, patience)) {
      EXPECT_EQ(one.status, IBV_WC_SUCCESS);
      numbers.push_back(one.imm_data);
    }
    return numbers;
  }
  std::string SendStatuses(size_t count) { return Pair::StatusesOf(Pair::Poll(send_cq, count)); }
  ibv_qp_state State() {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init), 0);
    return attributes.qp_state;
  }
  std::string Select() const { return " qp=" + std::to_string(qp->qp_num); }

  ibv_pd* pd = nullptr;
  ibv_cq *send_cq = nullptr, *receive_cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  ibv_ah* handle = nullptr;
  uint8_t memory[kRoom];
};

// `one` sends to `two`; `third` must not notice.
class DatagramFaults : public FaultsTest {
 protected:
  void SetUp() override {
    Start("");
    for (End* end : {&one_, &two_, &third_}) end->Make(context());
  }
  void TearDown() override {
    third_.Send(third_, 77);
    EXPECT_EQ(third_.SendStatuses(1), "77:success ");
    EXPECT_EQ(third_.Received(1), std::vector<uint32_t>{77});
    FaultsTest::TearDown();
  }
  ibv_context* context() { return subject.client->verbs; }

  End one_, two_, third_;
};

TEST_F(DatagramFaults, CompletionOfASend) {
  SetFaults("completion status=LOC_QP_OP_ERR opcode=SEND_WITH_IMM nth=2" + one_.Select());
  ASSERT_EQ(one_.Send(two_, 1), 0);
  ASSERT_EQ(one_.Send(two_, 2), 0);
  ASSERT_EQ(one_.Send(two_, 3), 0);
  EXPECT_EQ(one_.SendStatuses(3), "1:success 2:local QP operation error 3:Work Request Flushed Error ");
  EXPECT_EQ(one_.State(), IBV_QPS_SQE);
  EXPECT_EQ(two_.Received(2, milliseconds(50)), std::vector<uint32_t>{1}) << "it was carried out";
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(one_.qp, &attributes, IBV_QP_STATE), 0) << "as from any error of the send queue";
  ASSERT_EQ(one_.Send(two_, 4), 0);
  EXPECT_EQ(two_.Received(1), std::vector<uint32_t>{4});
}

TEST_F(DatagramFaults, CompletionOfAReceive) {
  SetFaults("completion status=LOC_LEN_ERR opcode=RECV nth=2" + two_.Select());
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_EQ(one_.Send(two_, i), 0);
  EXPECT_EQ(one_.SendStatuses(3), "1:success 2:success 3:success ");
  const auto received = Pair::Poll(two_.receive_cq, 8);
  ASSERT_EQ(received.size(), 8u);
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(received[1].status, IBV_WC_LOC_LEN_ERR);
  for (size_t i = 2; i < 8; ++i) EXPECT_EQ(received[i].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(AsyncEvents(context(), 1), Events{IBV_EVENT_QP_FATAL});
  EXPECT_EQ(two_.State(), IBV_QPS_ERR);
}

TEST_F(DatagramFaults, ReceiverNotReadyLosesTheDatagram) {
  SetFaults("rnr every=2" + two_.Select());
  for (uint64_t i = 1; i <= 6; ++i) ASSERT_EQ(one_.Send(two_, i), 0);
  EXPECT_EQ(one_.SendStatuses(6), "1:success 2:success 3:success 4:success 5:success 6:success ");
  EXPECT_EQ(two_.Received(4, milliseconds(100)), (std::vector<uint32_t>{1, 3, 5}));
  EXPECT_EQ(Injected(), 3);
  EXPECT_EQ(two_.State(), IBV_QPS_RTS);
}

TEST_F(DatagramFaults, CompletionQueueOverrun) {
  SetFaults("cq_overrun nth=2" + one_.Select());
  ASSERT_EQ(one_.Send(two_, 1), 0);
  ASSERT_EQ(one_.Send(two_, 2), 0);
  EXPECT_EQ(AsyncEvents(context(), 2), (Events{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
  EXPECT_EQ(Pair::StatusesOf(Pair::Poll(one_.send_cq, 2, milliseconds(50))), "1:success ");
  EXPECT_EQ(one_.State(), IBV_QPS_ERR);
  EXPECT_EQ(two_.Received(2), (std::vector<uint32_t>{1, 2}));
}

TEST_F(DatagramFaults, CompletionQueueOverrunOfAReceive) {
  SetFaults("cq_overrun" + two_.Select());
  ASSERT_EQ(one_.Send(two_, 1), 0);
  EXPECT_EQ(AsyncEvents(context(), 2), (Events{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
  EXPECT_EQ(two_.State(), IBV_QPS_ERR);
}

TEST_F(DatagramFaults, PortThatIsDownLosesThem) {
  SetFaults(std::string("port_down device=") + context()->device->name);
  EXPECT_EQ(AsyncEvents(context(), 1), Events{IBV_EVENT_PORT_ERR});
  ASSERT_EQ(one_.Send(two_, 1), 0);
  EXPECT_EQ(one_.SendStatuses(1), "1:success ");
  ClearFaults();
  EXPECT_EQ(AsyncEvents(context(), 1), Events{IBV_EVENT_PORT_ACTIVE});
  ASSERT_EQ(one_.Send(two_, 2), 0);
  EXPECT_EQ(two_.Received(2, milliseconds(100)), std::vector<uint32_t>{2});
}

TEST_F(DatagramFaults, Posting) {
  SetFaults("fail call=ibv_post_send errno=ENOMEM nth=1" + one_.Select() + "; fail call=ibv_post_recv errno=EINVAL nth=1" +
            two_.Select() + "; fail call=ibv_create_ah errno=EMFILE");
  EXPECT_EQ(one_.Send(two_, 1), ENOMEM);
  EXPECT_EQ(two_.PostReceive(9), EINVAL);
  ibv_ah_attr to{};
  EXPECT_EQ(ibv_create_ah(one_.pd, &to), nullptr);
  EXPECT_EQ(errno, EMFILE);
  EXPECT_EQ(one_.Send(two_, 2), 0);
  EXPECT_EQ(two_.Received(1), std::vector<uint32_t>{2});
}

TEST_F(DatagramFaults, WhatIsOfConnectionsLeavesThemAlone) {
  std::string faults;
  for (const char* kind : {"cut", "reset", "blackhole", "corrupt", "delay time=1s", "bandwidth rate=1kbit"}) {
    faults += kind + one_.Select() + ";";
  }
  SetFaults(faults);
  ASSERT_EQ(one_.Send(two_, 1), 0);
  EXPECT_EQ(two_.Received(1, milliseconds(500)), std::vector<uint32_t>{1});
  EXPECT_EQ(Injected(), 0);
}

}  // namespace
}  // namespace weft::faults_test
