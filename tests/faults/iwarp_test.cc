// Faults whose symptom is iWARP's.
#include "tests/faults/program.h"

namespace weft::faults_test {
namespace {

TEST_F(FaultsTest, ReceiverNotReadyTerminatesTheStream) {
  Start("");
  SetFaults("rnr nth=2" + subject.SelectServer());
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 1), 0);
  EXPECT_EQ(subject.SendStatuses(1), "1:success ");
  // The Read is outstanding when the peer ends the stream: it bears the blame.
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 2), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 3, 100), 0);
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
