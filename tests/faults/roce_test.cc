// Faults whose symptom is InfiniBand's.
#include <cstdio>

#include "tests/faults/program.h"

namespace weft::faults_test {
namespace {

const std::string kExceeded = "transport retry counter exceeded";

// A number of `weft stat` for a queue pair of this process.
uint64_t Statistic(uint32_t number, const std::string& name) {
  const std::string all = control::Ask(getpid(), "stat").value().text;
  char key[32];
  std::snprintf(key, sizeof key, "qp=0x%x\t", number);
  const size_t line = all.find(key);
  EXPECT_NE(line, all.npos) << all;
  const size_t at = all.find("\t" + name + "=", line);
  EXPECT_NE(at, all.npos) << all;
  return line == all.npos || at == all.npos ? 0 : std::stoull(all.substr(at + name.size() + 2));
}

using ReceiverNotReady = FaultsTest;

TEST_F(ReceiverNotReady, TheSenderWaitsAndTriesAgain) {
  Start("", /*rnr_retry=*/3);
  SetFaults("rnr times=3" + subject.SelectServer());
  const auto begun = Clock::now();
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 1), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 2, 100), 0);
  EXPECT_EQ(subject.SendStatuses(2), "1:success 2:success ");
  EXPECT_GE(Clock::now() - begun, 3 * std::chrono::microseconds(640)) << "min_rnr_timer of a connection of rdma_cm";
  EXPECT_EQ(Injected(), 3);
  EXPECT_EQ(Statistic(subject.client->qp->qp_num, "rnr"), 3u);
  EXPECT_GE(Statistic(subject.client->qp->qp_num, "retries"), 3u);
  EXPECT_EQ(Statistic(subject.server->qp->qp_num, "rnr"), 3u);
  EXPECT_EQ(subject.Poll(subject.server->recv_cq, 1).size(), 1u);
}

TEST_F(ReceiverNotReady, TheRetriesAreExceeded) {
  Start("", /*rnr_retry=*/2);
  SetFaults("rnr" + subject.SelectServer());
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 1, 100), 0);
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 2), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 3, 10), 0);
  EXPECT_EQ(subject.SendStatuses(3), "1:success 2:RNR retry counter exceeded 3:Work Request Flushed Error ");
  EXPECT_EQ(Injected(), 3) << "the first try, and two more";
  subject.ExpectDisconnected();
  const auto received = subject.Poll(subject.server->recv_cq, kDepth);
  ASSERT_EQ(received.size(), static_cast<size_t>(kDepth));
  EXPECT_EQ(received[0].status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(ReceiverNotReady, SevenIsForEver) {
  Start("", /*rnr_retry=*/7);
  SetFaults("rnr" + subject.SelectServer());
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 1), 0);
  EXPECT_TRUE(subject.Poll(subject.client->send_cq, 1, milliseconds(100)).empty());
  EXPECT_GT(Injected(), 10);
  bystander.ExpectUnharmed();
  ClearFaults();
  EXPECT_EQ(subject.SendStatuses(1), "1:success ");
  EXPECT_EQ(subject.Poll(subject.server->recv_cq, 1).size(), 1u);
  subject.ExpectUnharmed();
}

TEST_F(ReceiverNotReady, AStormLosesAndRepeatsNothing) {
  Start("", /*rnr_retry=*/7);
  SetFaults("rnr probability=50%" + subject.SelectServer() + "; seed=1");
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_EQ(i % 3 == 0 ? subject.Post(IBV_WR_RDMA_WRITE_WITH_IMM, i, 1 + i) : subject.Post(IBV_WR_SEND, i), 0);
  }
  const auto sent = subject.Poll(subject.client->send_cq, 20);
  const auto received = subject.Poll(subject.server->recv_cq, 20);
  ASSERT_EQ(sent.size(), 20u);
  ASSERT_EQ(received.size(), 20u);
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(sent[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent[i].wr_id, i);
    EXPECT_EQ(received[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].byte_len, i % 3 == 0 ? 1 + i : 0);
    EXPECT_EQ(received[i].opcode, i % 3 == 0 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
  }
  EXPECT_GT(Injected(), 5);
  EXPECT_TRUE(subject.Poll(subject.server->recv_cq, 1, milliseconds(20)).empty());
}

TEST_F(FaultsTest, BlackholeExceedsTheRetries) {
  subject.Connect(/*rnr_retry=*/7, /*retries=*/0);
  bystander.Connect();
  SetFaults("blackhole" + subject.SelectClient());
  const auto begun = Clock::now();
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 100), 0);
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 2), 0);
  EXPECT_EQ(subject.SendStatuses(2), "1:" + kExceeded + " 2:Work Request Flushed Error ");
  EXPECT_GE(Clock::now() - begun, milliseconds(2900));
  subject.client_events.Expect(RDMA_CM_EVENT_DISCONNECTED, subject.client);
  EXPECT_EQ(Pair::StateOf(subject.client), IBV_QPS_ERR);
}

// Nobody knows which request was in a damaged frame; what came before it is answered first.
TEST_F(FaultsTest, DamageIsBlamedOnTheOldestThatIsNotAnswered) {
  if (OverSctp()) return;  // nothing is to blame: Corrupt, in symptom_test
  Start("corrupt nth=100000" + subject.SelectClient());  // CRC is agreed
  const std::string slow = "bandwidth rate=8mbit" + subject.SelectServer();
  SetFaults(slow);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, kBytes), 0);
  usleep(20'000);  // it is being answered
  SetFaults(slow + "; corrupt" + subject.SelectClient());
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 2, 1000), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 3, 1000), 0);
  EXPECT_EQ(subject.SendStatuses(3), "1:success 2:remote operation error 3:Work Request Flushed Error ");
  subject.ExpectDisconnected();
  EXPECT_EQ(AsyncEvents(subject.client->verbs, 1), EventsOfTerminate());
}

// --- queue pairs that the program connects itself ---

// Two of this process, connected by ibv_modify_qp.
class SelfConnectedFaults : public FaultsTest {
 protected:
  struct End {
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
    int PostReceive(uint64_t id) {
      ibv_recv_wr wr{.wr_id = id}, *bad = nullptr;
      return ibv_post_recv(qp, &wr, &bad);
    }
    int PostSend(uint64_t id) {
      ibv_send_wr wr{.wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad = nullptr;
      return ibv_post_send(qp, &wr, &bad);
    }
    ibv_qp_state State() {
      ibv_qp_attr attributes{};
      ibv_qp_init_attr init{};
      EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init), 0);
      return attributes.qp_state;
    }
    std::string Select() const { return " qp=" + std::to_string(qp->qp_num); }
  };

  void SetUp() override {
    Start("");
    for (End* end : {&one_, &two_}) {
      end->cq = ibv_create_cq(subject.client->verbs, 64, nullptr, nullptr, 0);
      ibv_qp_init_attr attributes{};
      attributes.send_cq = attributes.recv_cq = end->cq;
      attributes.cap = {16, 16, 1, 1, 0};
      attributes.qp_type = IBV_QPT_RC;
      end->qp = ibv_create_qp(subject.client->pd, &attributes);
      ASSERT_NE(end->qp, nullptr);
    }
    Connect(one_, two_);
    Connect(two_, one_);
    ASSERT_EQ(two_.PostReceive(0), 0);
    ASSERT_EQ(one_.PostSend(0), 0);
    EXPECT_EQ(Pair::StatusesOf(Pair::Poll(one_.cq, 1)), "0:success ");
    EXPECT_EQ(Pair::StatusesOf(Pair::Poll(two_.cq, 1)), "0:success ");
  }
  void TearDown() override {
    subject.ExpectUnharmed();
    for (End* end : {&one_, &two_}) {
      EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
      EXPECT_EQ(ibv_destroy_cq(end->cq), 0);
    }
    FaultsTest::TearDown();
  }

  End one_, two_;

 private:
  static void Connect(End& end, const End& peer) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(end.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer.qp->qp_num;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_query_gid(end.qp->context, 1, 0, &a.ah_attr.grh.dgid), 0);
    ASSERT_EQ(ibv_modify_qp(end.qp, &a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                IBV_QP_MIN_RNR_TIMER),
              0);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 10;
    a.retry_cnt = 1;
    a.rnr_retry = 1;
    ASSERT_EQ(ibv_modify_qp(end.qp, &a,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
};

TEST_F(SelfConnectedFaults, CutIsNoticedByWhoWantsToSend) {
  SetFaults("cut" + one_.Select());
  EXPECT_TRUE(Pair::Poll(one_.cq, 1, milliseconds(50)).empty());
  EXPECT_EQ(one_.State(), IBV_QPS_RTS);
  EXPECT_EQ(two_.State(), IBV_QPS_RTS);
  ASSERT_EQ(one_.PostReceive(1), 0);
  ASSERT_EQ(one_.PostSend(2), 0);
  const auto done = Pair::Poll(one_.cq, 2);
  ASSERT_EQ(done.size(), 2u);
  for (const ibv_wc& each : done) EXPECT_EQ(each.status, each.wr_id == 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(one_.State(), IBV_QPS_ERR);
  EXPECT_EQ(two_.State(), IBV_QPS_RTS) << "it wanted nothing";
}

TEST_F(SelfConnectedFaults, ResetLikewise) {
  SetFaults("reset" + two_.Select());
  ASSERT_EQ(one_.PostSend(1), 0);
  ASSERT_EQ(one_.PostSend(2), 0);
  EXPECT_EQ(Pair::StatusesOf(Pair::Poll(one_.cq, 2)), "1:" + kExceeded + " 2:Work Request Flushed Error ");
}

TEST_F(SelfConnectedFaults, BlackholeExceedsTheRetries) {
  SetFaults("blackhole" + two_.Select());
  ASSERT_EQ(two_.PostReceive(1), 0);
  ASSERT_EQ(one_.PostSend(1), 0);
  EXPECT_EQ(Pair::StatusesOf(Pair::Poll(one_.cq, 1)), "1:" + kExceeded + " ");
  EXPECT_EQ(one_.State(), IBV_QPS_ERR);
  EXPECT_EQ(two_.State(), IBV_QPS_RTS);
}

TEST_F(SelfConnectedFaults, ReceiverNotReadyExceedsTheRetries) {
  SetFaults("rnr" + two_.Select());
  ASSERT_EQ(two_.PostReceive(1), 0);
  ASSERT_EQ(one_.PostSend(1), 0);
  EXPECT_EQ(Pair::StatusesOf(Pair::Poll(one_.cq, 1)), "1:RNR retry counter exceeded ");
  EXPECT_EQ(Injected(), 2);
  EXPECT_EQ(one_.State(), IBV_QPS_ERR);
}

TEST_F(SelfConnectedFaults, CompletionWithAStatus) {
  SetFaults("completion status=REM_ACCESS_ERR opcode=SEND nth=2" + one_.Select());
  ASSERT_EQ(two_.PostReceive(1), 0);
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_EQ(one_.PostSend(i), 0);
  EXPECT_EQ(Pair::StatusesOf(Pair::Poll(one_.cq, 3)), "1:success 2:remote access error 3:Work Request Flushed Error ");
  EXPECT_EQ(one_.State(), IBV_QPS_ERR);
}

TEST_F(SelfConnectedFaults, CompletionQueueOverrun) {
  SetFaults("cq_overrun" + one_.Select());
  ASSERT_EQ(two_.PostReceive(1), 0);
  ASSERT_EQ(one_.PostSend(1), 0);
  EXPECT_EQ(AsyncEvents(subject.client->verbs, 2), (std::multiset<ibv_event_type>{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
  EXPECT_TRUE(Pair::Poll(one_.cq, 1, milliseconds(20)).empty());
  EXPECT_EQ(one_.State(), IBV_QPS_ERR);
}

}  // namespace
}  // namespace weft::faults_test
