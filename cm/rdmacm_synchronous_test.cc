// Identifiers without a channel, and rdma_create_ep, over the real RNIC on loopback.
#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

TEST(RdmacmSynchronous, EndpointsConnectTransferDisconnect) {
  Info passive("127.0.0.1", "0", RAI_PASSIVE);
  rdma_cm_id* listener = nullptr;
  ibv_qp_init_attr attributes = SmallQueuePair();
  ASSERT_EQ(rdma_create_ep(&listener, passive.list, nullptr, &attributes), 0) << strerror(errno);
  ASSERT_EQ(rdma_listen(listener, 0), 0);
  const std::string port = std::to_string(ntohs(rdma_get_src_port(listener)));

  rdma_cm_id* server = nullptr;
  std::thread accepting([&] {
    ASSERT_EQ(rdma_get_request(listener, &server), 0) << strerror(errno);
    ASSERT_NE(server->event, nullptr);
    EXPECT_EQ(server->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    EXPECT_EQ(DataOf(server->event), "first, second");
    EXPECT_NE(server->qp, nullptr) << "rdma_create_ep's attributes make its queue pair";
    ASSERT_EQ(rdma_accept(server, nullptr), 0) << strerror(errno);
    EXPECT_EQ(server->event->event, RDMA_CM_EVENT_ESTABLISHED);
  });

  Info active("127.0.0.1", port.c_str());
  const std::string connect_data = "first, ";
  active.list->ai_connect = strdup(connect_data.c_str());
  active.list->ai_connect_len = connect_data.size();
  rdma_cm_id* client = nullptr;
  attributes = SmallQueuePair();
  ASSERT_EQ(rdma_create_ep(&client, active.list, nullptr, &attributes), 0) << strerror(errno);
  EXPECT_NE(client->pd, nullptr);
  EXPECT_NE(client->send_cq, nullptr);
  EXPECT_NE(client->recv_cq_channel, nullptr);
  EXPECT_EQ(attributes.send_cq, client->send_cq);
  rdma_conn_param parameters = WithData("second");
  ASSERT_EQ(rdma_connect(client, &parameters), 0) << strerror(errno);
  EXPECT_EQ(client->event->event, RDMA_CM_EVENT_ESTABLISHED);
  accepting.join();
  ASSERT_NE(server, nullptr);

  SendAndReceive(client, server);
  EXPECT_EQ(rdma_disconnect(client), 0) << strerror(errno);
  EXPECT_EQ(rdma_disconnect(server), 0) << strerror(errno);
  EXPECT_EQ(rdma_disconnect(server), 0) << "a second time waits for nothing";
  rdma_destroy_ep(listener);
  rdma_destroy_ep(server);
  rdma_destroy_ep(client);
}

TEST(RdmacmSynchronous, ListenerMayBeDestroyedBeforeItsRequests) {
  Info passive("127.0.0.1", "0", RAI_PASSIVE);
  rdma_cm_id *listener = nullptr, *server = nullptr;
  ASSERT_EQ(rdma_create_ep(&listener, passive.list, nullptr, nullptr), 0);
  ASSERT_EQ(rdma_listen(listener, 0), 0);
  Channel clients;
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  ASSERT_EQ(rdma_get_request(listener, &server), 0);
  rdma_destroy_ep(listener);
  MakeQueuePair(server);
  EXPECT_EQ(rdma_accept(server, nullptr), 0) << strerror(errno);
  clients.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
  rdma_destroy_ep(server);
  DestroyAll({client});
}

TEST(RdmacmSynchronous, RefusalIsAnErrno) {
  Channel other;
  rdma_cm_id* unused = NewId(other);
  sockaddr_storage to = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(unused, Raw(to)), 0);
  to = Address("127.0.0.1", rdma_get_src_port(unused));
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0);
  ASSERT_EQ(rdma_resolve_route(id, 2000), 0);
  MakeQueuePair(id);
  EXPECT_EQ(rdma_connect(id, nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  ASSERT_NE(id->event, nullptr);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_REJECTED);
  DestroyAll({id, unused});
}

TEST(RdmacmSynchronous, GetRequestWantsASynchronousListener) {
  Channel channel;
  rdma_cm_id* listener = Listener(channel, "127.0.0.1");
  rdma_cm_id* request = nullptr;
  EXPECT_EQ(rdma_get_request(listener, &request), -1);
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({listener});
}

}  // namespace
}  // namespace weft::cm::public_api
