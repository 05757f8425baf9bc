// A program of its own: afterwards the process has no device any more.
#include "tests/faults/program.h"

namespace weft::faults_test {
namespace {

TEST(DeviceFatal, EverythingFlushesAndNothingCanBeMade) {
  Pair one, two;
  one.Connect();
  two.Connect();
  ibv_context* context = one.client->verbs;
  SetFaults(std::string("device_fatal after=20ms device=") + context->device->name);
  EXPECT_EQ(AsyncEvents(context, 1), std::multiset<ibv_event_type>{IBV_EVENT_DEVICE_FATAL});
  for (Pair* pair : {&one, &two}) {
    pair->ExpectDisconnected();
    const auto received = Pair::Poll(pair->server->recv_cq, kDepth);
    EXPECT_EQ(received.size(), static_cast<size_t>(kDepth));
    for (const ibv_wc& completion : received) EXPECT_EQ(completion.status, IBV_WC_WR_FLUSH_ERR);
    ASSERT_EQ(pair->Post(IBV_WR_SEND, 1), 0);
    EXPECT_EQ(pair->SendStatuses(1), "1:Work Request Flushed Error ");
  }
  char buffer[10];
  EXPECT_EQ(ibv_reg_mr(one.client->pd, buffer, sizeof buffer, 0), nullptr);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(ibv_alloc_pd(context), nullptr);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(ibv_create_cq(context, 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EIO);
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
}

}  // namespace
}  // namespace weft::faults_test
