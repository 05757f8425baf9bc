// Faults whose symptom is iWARP's.
#include "tests/faults/program.h"

namespace weft::faults_test {
namespace {

TEST_F(FaultsTest, ReceiverNotReadyTerminatesTheStream) {
  Start("");
  SetFaults("rnr nth=2" + subject.SelectServer());
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 1), 0);
  EXPECT_EQ(subject.SendStatuses(1), "1:success ");
  // Both go out together: the Read is outstanding when the peer ends the stream, and bears the blame.
  ibv_sge piece{reinterpret_cast<uint64_t>(subject.client_memory.data()), 100, subject.client_mr->lkey};
  ibv_send_wr read{.wr_id = 3, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
  read.wr.rdma = {reinterpret_cast<uint64_t>(subject.server_memory.data()), subject.server_mr->rkey};
  ibv_send_wr send{.wr_id = 2, .next = &read, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(subject.client->qp, &send, &bad), 0);
  EXPECT_EQ(subject.SendStatuses(2), "2:success 3:remote operation error ");
  const auto received = subject.Poll(subject.server->recv_cq, kDepth);
  ASSERT_EQ(received.size(), static_cast<size_t>(kDepth));
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(received[1].status, IBV_WC_WR_FLUSH_ERR);
  subject.ExpectDisconnected();
  EXPECT_EQ(AsyncEvents(subject.client->verbs, 2), (std::multiset<ibv_event_type>{IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR}));
}

}  // namespace
}  // namespace weft::faults_test
