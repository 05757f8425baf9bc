// What a program sees of each kind of fault, as `weft faults --list` says it; and that a connection which is not selected sees nothing.
#include <algorithm>

#include "tests/faults/program.h"

namespace weft::faults_test {
namespace {

using Events = std::multiset<ibv_event_type>;

const std::string kFlushed = "Work Request Flushed Error";
// Of the oldest send when a connection breaks: RDMA over TCP has no retries that could be exceeded.
std::string Broken() { return IsRoce() ? "transport retry counter exceeded" : kFlushed; }

TEST_F(FaultsTest, Cut) {
  Start("cut after_bytes=5000" + subject.SelectClient());
  for (int i = 0; i < 10; ++i) subject.Post(IBV_WR_RDMA_READ, static_cast<uint64_t>(i), 1000);
  // Some Reads are answered before the 5000 bytes, the others are flushed, in order.
  const auto completions = subject.Poll(subject.client->send_cq, 10);
  ASSERT_EQ(completions.size(), 10u);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(completions[i].wr_id, i);
  EXPECT_EQ(completions[1].status, IBV_WC_SUCCESS);
  for (size_t i = 1; i < 10; ++i) {
    EXPECT_TRUE(completions[i].status == IBV_WC_WR_FLUSH_ERR || completions[i - 1].status == IBV_WC_SUCCESS);
  }
  EXPECT_EQ(completions[9].status, IBV_WC_WR_FLUSH_ERR);
  subject.ExpectDisconnected();
  const auto received = subject.Poll(subject.server->recv_cq, kDepth);
  EXPECT_EQ(received.size(), static_cast<size_t>(kDepth));
  for (const ibv_wc& one : received) EXPECT_EQ(one.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(Injected(), 1);
}

TEST_F(FaultsTest, CutAfterATime) {
  Start("cut after=50ms" + subject.SelectClient());
  subject.ExpectDisconnected();
  EXPECT_EQ(subject.Post(IBV_WR_SEND, 1), 0);
  EXPECT_EQ(subject.SendStatuses(1), "1:" + kFlushed + " ");
}

TEST_F(FaultsTest, Reset) {
  Start("reset after_bytes=5000" + subject.SelectClient());
  ASSERT_EQ(subject.PostTogether(10, IBV_WR_RDMA_READ, 1000), 0);
  const auto completions = subject.Poll(subject.client->send_cq, 10);
  ASSERT_EQ(completions.size(), 10u);
  EXPECT_EQ(completions[9].status, IBV_WC_WR_FLUSH_ERR);
  const auto failed = std::find_if(completions.begin(), completions.end(), [](const ibv_wc& one) { return one.status != IBV_WC_SUCCESS; });
  EXPECT_EQ(ibv_wc_status_str(failed->status), Broken());
  EXPECT_TRUE(std::all_of(failed + 1, completions.end(), [](const ibv_wc& one) { return one.status == IBV_WC_WR_FLUSH_ERR; }));
  subject.ExpectDisconnected();
}

TEST_F(FaultsTest, ResetFromTheAcceptingSide) {
  Start("");
  SetFaults("reset" + subject.SelectServer());
  subject.ExpectDisconnected();
}

TEST_F(FaultsTest, BlackholeSaysNothingAndHeals) {
  Start("");
  SetFaults("blackhole" + subject.SelectClient());
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 100), 0);
  EXPECT_TRUE(subject.Poll(subject.client->send_cq, 1, milliseconds(300)).empty());
  EXPECT_FALSE(subject.client_events.Readable(0));
  EXPECT_FALSE(subject.server_events.Readable(0));
  bystander.ExpectUnharmed();
  ClearFaults();
  EXPECT_EQ(subject.SendStatuses(1), "1:success ");
  subject.ExpectUnharmed();
}

TEST_F(FaultsTest, BlackholeWithAnEndLosesNothing) {
  Start("blackhole after_bytes=20000 for=200ms" + subject.SelectClient());
  for (int i = 0; i < 5; ++i) ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, static_cast<uint64_t>(i), 100'000), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 5, 100), 0);
  const auto begun = Clock::now();
  EXPECT_EQ(subject.SendStatuses(6), "0:success 1:success 2:success 3:success 4:success 5:success ");
  EXPECT_GE(Clock::now() - begun, milliseconds(150));
  subject.ExpectUnharmed();
}

TEST_F(FaultsTest, BlackholeThatIsGivenUp) {
  Start("blackhole after=20ms give_up=100ms" + subject.SelectClient());
  usleep(40'000);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 100), 0);
  EXPECT_EQ(subject.SendStatuses(1), "1:" + Broken() + " ");
  subject.client_events.Expect(RDMA_CM_EVENT_DISCONNECTED, subject.client);
  EXPECT_FALSE(subject.server_events.Readable(300));
  EXPECT_EQ(Pair::StateOf(subject.server), IBV_QPS_RTS);
}

TEST_F(FaultsTest, Delay) {
  Start("delay time=100ms" + subject.SelectClient());
  const auto begun = Clock::now();
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 100), 0);
  bystander.ExpectUnharmed();
  EXPECT_EQ(subject.SendStatuses(1), "1:success ");
  EXPECT_GE(Clock::now() - begun, milliseconds(100));
  subject.ExpectUnharmed();
}

TEST_F(FaultsTest, Bandwidth) {
  Start("bandwidth rate=8mbit" + subject.SelectClient());
  const auto begun = Clock::now();
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 1, 200'000), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 2, 1), 0);
  EXPECT_EQ(subject.SendStatuses(2), "1:success 2:success ");
  EXPECT_GE(Clock::now() - begun, milliseconds(180));
  subject.ExpectUnharmed();
}

TEST_F(FaultsTest, Corrupt) {
  Start("corrupt" + subject.SelectClient());
  if (OverSctp()) {  // whose checksum finds it, and which sends the packet again
    subject.ExpectUnharmed();
    EXPECT_EQ(Injected(), 1);
    return;
  }
  memset(subject.client_memory.data(), 'x', 1000);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 100), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 2, 1000), 0);
  const auto completions = subject.Poll(subject.client->send_cq, 2);
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_EQ(completions[0].status, IBV_WC_REM_OP_ERR) << ibv_wc_status_str(completions[0].status);
  EXPECT_NE(completions[0].status, IBV_WC_SUCCESS);
  subject.ExpectDisconnected();
  EXPECT_EQ(AsyncEvents(subject.client->verbs, EventsOfTerminate().size()), EventsOfTerminate());
  EXPECT_EQ(Injected(), 1);
}

TEST_F(FaultsTest, CorruptLeavesConnectionsWithoutCrcAlone) {
  Start("");  // both ends on one host: no CRC
  SetFaults("corrupt" + subject.SelectClient());
  subject.ExpectUnharmed();
  EXPECT_EQ(Injected(), OverSctp() ? 1 : 0) << "SCTP always has one";
}

TEST_F(FaultsTest, CompletionOfEachOpcode) {
  Start("");
  SetFaults("completion status=RETRY_EXC_ERR opcode=RDMA_WRITE nth=2" + subject.SelectClient());
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 1, 100), 0);
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 2), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 3, 10), 0);
  EXPECT_EQ(subject.SendStatuses(3), "1:success 2:success 3:success ");
  memset(subject.client_memory.data(), 'x', 100);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 4, 100), 0);
  EXPECT_EQ(subject.SendStatuses(1), "4:transport retry counter exceeded ");
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_WRITE, 5, 100), 0);
  EXPECT_EQ(subject.SendStatuses(1), "5:" + kFlushed + " ");
  EXPECT_NE(subject.server_memory[0], 'x') << "it was carried out";
  subject.ExpectDisconnected();
}

TEST_F(FaultsTest, CompletionBehindOthersKeepsTheOrder) {
  Start("");
  SetFaults("completion status=REM_ACCESS_ERR opcode=SEND" + subject.SelectClient());
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 100'000), 0);
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 2), 0);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 3, 10), 0);
  EXPECT_EQ(subject.SendStatuses(3), "1:success 2:remote access error 3:" + kFlushed + " ");
  subject.ExpectDisconnected();
}

TEST_F(FaultsTest, CompletionOfAReceive) {
  Start("");
  SetFaults("completion status=LOC_LEN_ERR opcode=RECV nth=2" + subject.SelectServer());
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 1), 0);
  ASSERT_EQ(subject.Post(IBV_WR_SEND, 2), 0);
  const auto received = subject.Poll(subject.server->recv_cq, 3);
  ASSERT_EQ(received.size(), 3u);
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(received[1].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(received[2].status, IBV_WC_WR_FLUSH_ERR);
  subject.ExpectDisconnected();
  EXPECT_EQ(AsyncEvents(subject.client->verbs, EventsOfTerminate().size()), EventsOfTerminate());
}

TEST_F(FaultsTest, CompletionQueueOverrun) {
  Start("");
  SetFaults("cq_overrun nth=2" + subject.SelectClient());
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 10), 0);
  EXPECT_EQ(subject.SendStatuses(1), "1:success ");
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 2, 10), 0);
  EXPECT_EQ(AsyncEvents(subject.client->verbs, 2), (Events{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
  EXPECT_TRUE(subject.Poll(subject.client->send_cq, 1, milliseconds(50)).empty()) << "its completion is lost";
  subject.ExpectDisconnected();
}

TEST_F(FaultsTest, FailuresOfVerbs) {
  Start("");
  ibv_pd* pd = subject.client->pd;
  ibv_context* context = subject.client->verbs;
  char buffer[10];
  SetFaults("fail call=ibv_reg_mr errno=ENOMEM nth=2; fail call=ibv_create_cq errno=EMFILE; fail call=ibv_alloc_pd errno=ENOSPC;"
            "fail call=ibv_create_comp_channel errno=EAGAIN; fail call=ibv_create_qp errno=EPERM; fail call=ibv_open_device errno=EIO");
  ibv_mr* first = ibv_reg_mr(pd, buffer, sizeof buffer, 0);
  ASSERT_NE(first, nullptr);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd, buffer, sizeof buffer, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ibv_mr* third = ibv_reg_mr(pd, buffer, sizeof buffer, 0);
  EXPECT_NE(third, nullptr);
  EXPECT_EQ(ibv_create_cq(context, 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EMFILE);
  EXPECT_EQ(ibv_alloc_pd(context), nullptr);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(ibv_create_comp_channel(context), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = subject.client->send_cq;
  attributes.qp_type = IBV_QPT_RC;
  EXPECT_EQ(ibv_create_qp(pd, &attributes), nullptr);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ibv_open_device(context->device), nullptr);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(Injected(), 6);
  ibv_dereg_mr(first);
  ibv_dereg_mr(third);
}

TEST_F(FaultsTest, FailuresOfPosting) {
  Start("");
  SetFaults("fail call=ibv_post_send errno=EAGAIN nth=2" + subject.SelectClient() +
            "; fail call=ibv_post_recv errno=ENOMEM times=1" + subject.SelectServer() +
            "; fail call=ibv_modify_qp errno=EINVAL" + subject.SelectClient() + "; fail call=ibv_resize_cq errno=EBUSY");
  EXPECT_EQ(subject.Post(IBV_WR_SEND, 1), 0);
  EXPECT_EQ(subject.Post(IBV_WR_SEND, 2), EAGAIN);
  EXPECT_EQ(subject.Post(IBV_WR_SEND, 3), 0);
  EXPECT_EQ(subject.SendStatuses(2), "1:success 3:success ");
  EXPECT_EQ(subject.Poll(subject.server->recv_cq, 2).size(), 2u);
  ibv_recv_wr wr{}, *bad = nullptr;
  EXPECT_EQ(ibv_post_recv(subject.server->qp, &wr, &bad), ENOMEM);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(ibv_post_recv(subject.server->qp, &wr, &bad), 0);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(subject.client->qp, &attributes, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(ibv_resize_cq(subject.client->send_cq, 100), EBUSY);
  ClearFaults();
  subject.ExpectUnharmed();
}

TEST_F(FaultsTest, SlowProgress) {
  Start("");
  SetFaults("slow_progress time=50ms");
  subject.ExpectUnharmed();  // slower, and right
  EXPECT_EQ(Injected(), 1);
}

TEST_F(FaultsTest, PortDown) {
  Start("");
  ibv_context* context = subject.client->verbs;
  const auto state = [context] {
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
    return port.state;
  };
  EXPECT_EQ(state(), IBV_PORT_ACTIVE);
  SetFaults(std::string("port_down for=300ms device=") + context->device->name);
  EXPECT_EQ(AsyncEvents(context, 1), Events{IBV_EVENT_PORT_ERR});
  EXPECT_EQ(state(), IBV_PORT_DOWN);
  ASSERT_EQ(subject.Post(IBV_WR_RDMA_READ, 1, 10), 0);
  EXPECT_TRUE(subject.Poll(subject.client->send_cq, 1, milliseconds(50)).empty());
  EXPECT_EQ(AsyncEvents(context, 1), Events{IBV_EVENT_PORT_ACTIVE});
  EXPECT_EQ(state(), IBV_PORT_ACTIVE);
  EXPECT_EQ(subject.SendStatuses(1), "1:success ");
  subject.ExpectUnharmed();
}

TEST_F(FaultsTest, PortOfAnotherDeviceIsAnothersAffair) {
  Start("");
  SetFaults("port_down device=weft_none0");
  subject.ExpectUnharmed();
  EXPECT_EQ(Injected(), 0);
}

TEST_F(FaultsTest, PortThatIsClearedComesUp) {
  Start("");
  SetFaults("port_down");
  EXPECT_EQ(AsyncEvents(subject.client->verbs, 1), Events{IBV_EVENT_PORT_ERR});
  ClearFaults();
  EXPECT_EQ(AsyncEvents(subject.client->verbs, 1), Events{IBV_EVENT_PORT_ACTIVE});
  subject.ExpectUnharmed();
}

// --- rdma_cm ---

class CmFaultsTest : public FaultsTest {
 protected:
  std::string SelectPort(rdma_cm_id* listener) { return " peer=:" + std::to_string(ntohs(rdma_get_src_port(listener))); }
};

TEST_F(CmFaultsTest, AddressAndRouteErrors) {
  Start("");
  SetFaults("cm_event event=ADDR_ERROR times=1" + SelectPort(subject.listener) + "; cm_event event=ROUTE_ERROR errno=EHOSTUNREACH times=1" +
            SelectPort(subject.listener));
  Channel events;
  rdma_cm_id* id = NewId(events);
  sockaddr_storage to = Address("127.0.0.1", rdma_get_src_port(subject.listener));
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0);
  events.Expect(RDMA_CM_EVENT_ADDR_ERROR, id, -EHOSTUNREACH);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0) << "the program may try again";
  events.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, id);
  ASSERT_EQ(rdma_resolve_route(id, 2000), 0);
  events.Expect(RDMA_CM_EVENT_ROUTE_ERROR, id, -EHOSTUNREACH);
  ASSERT_EQ(rdma_resolve_route(id, 2000), 0);
  events.Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, id);
  rdma_cm_id* other = NewId(events);
  Resolve(events, other, "127.0.0.1", rdma_get_src_port(bystander.listener));
  rdma_destroy_id(other);
  rdma_destroy_id(id);
}

TEST_F(CmFaultsTest, FailuresToConnect) {
  Start("");
  const struct {
    const char* name;
    rdma_cm_event_type event;
    int status;
  } kinds[] = {{"CONNECT_ERROR", RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET},
               {"UNREACHABLE", RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT},
               {"REJECTED", RDMA_CM_EVENT_REJECTED, ByTheProgram()}};
  for (const auto& kind : kinds) {
    SetFaults(std::string("cm_event event=") + kind.name + SelectPort(subject.listener));
    Channel events;
    rdma_cm_id* id = StartClient(events, "127.0.0.1", rdma_get_src_port(subject.listener));
    events.Expect(kind.event, id, kind.status);
    EXPECT_FALSE(subject.server_events.Readable(50)) << "the listener hears nothing";
    DestroyAll({id});
  }
}

TEST_F(CmFaultsTest, EventsOfEstablishedConnections) {
  SetFaults("cm_event event=DEVICE_REMOVAL" + SelectPort(subject.listener) + "; cm_event event=TIMEWAIT_EXIT" + SelectPort(subject.listener));
  subject.Connect();
  bystander.Connect();
  subject.client_events.Expect(RDMA_CM_EVENT_DEVICE_REMOVAL, subject.client);
  ASSERT_EQ(rdma_disconnect(subject.client), 0);
  subject.client_events.Expect(RDMA_CM_EVENT_DISCONNECTED, subject.client);
  subject.client_events.Expect(RDMA_CM_EVENT_TIMEWAIT_EXIT, subject.client);
  subject.server_events.Expect(RDMA_CM_EVENT_DISCONNECTED, subject.server);
}

TEST_F(CmFaultsTest, AddressChangeComesLaterWhenAsked) {
  const auto begun = Clock::now();
  SetFaults("cm_event event=ADDR_CHANGE after=100ms" + SelectPort(subject.listener));
  subject.Connect();
  bystander.Connect();
  subject.client_events.Expect(RDMA_CM_EVENT_ADDR_CHANGE, subject.client);
  EXPECT_GE(Clock::now() - begun, milliseconds(100));
  subject.ExpectUnharmed();
}

}  // namespace
}  // namespace weft::faults_test
