// Connections through the public API, over the real RNIC on loopback.
#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <set>
#include <thread>
#include <vector>

#include "cm/rdmacm_testing.h"

namespace weft::cm::public_api {
namespace {

class Families : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Families, ConnectTransferDisconnect) {
  const auto [listen_on, connect_to] = GetParam();
  Channel servers, clients;
  int context = 0;
  rdma_cm_id* listener = Listener(servers, listen_on, 0, &context);
  rdma_cm_id* client = StartClient(clients, connect_to, rdma_get_src_port(listener), "hello from the client");

  rdma_cm_event* request = servers.Get();
  ASSERT_NE(request, nullptr);
  ASSERT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(DataOf(request), "hello from the client");
  EXPECT_EQ(request->param.conn.responder_resources, 1);
  EXPECT_EQ(request->param.conn.initiator_depth, 1);
  rdma_cm_id* server = request->id;
  EXPECT_EQ(server->context, &context);
  EXPECT_EQ(server->channel, listener->channel);
  EXPECT_NE(server->verbs, nullptr);
  EXPECT_EQ(server->port_num, 1);
  EXPECT_EQ(server->ps, RDMA_PS_TCP);
  EXPECT_EQ(rdma_get_src_port(server), rdma_get_src_port(listener));
  EXPECT_EQ(rdma_get_peer_addr(server)->sa_family, rdma_get_local_addr(client)->sa_family);
  MakeQueuePair(server);
  rdma_conn_param parameters = WithData("hello from the server");
  ASSERT_EQ(rdma_accept(server, &parameters), 0) << strerror(errno);
  rdma_ack_cm_event(request);

  rdma_cm_event* established = clients.Get();
  ASSERT_NE(established, nullptr);
  EXPECT_EQ(established->event, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(established->status, 0);
  EXPECT_EQ(DataOf(established), "hello from the server");
  rdma_ack_cm_event(established);
  servers.Expect(RDMA_CM_EVENT_ESTABLISHED, server);
  EXPECT_NE(rdma_get_src_port(client), 0);
  EXPECT_EQ(rdma_get_dst_port(server), rdma_get_src_port(client));

  SendAndReceive(client, server);
  SendAndReceive(server, client);

  EXPECT_EQ(rdma_disconnect(client), 0);
  clients.Expect(RDMA_CM_EVENT_DISCONNECTED, client);
  servers.Expect(RDMA_CM_EVENT_DISCONNECTED, server);
  EXPECT_EQ(rdma_disconnect(server), 0) << "the man page asks both sides to call it";
  EXPECT_FALSE(servers.Readable(0));
  DestroyAll({client, server, listener});
}

INSTANTIATE_TEST_SUITE_P(Loopback, Families,
                         testing::Values(std::pair{"127.0.0.1", "127.0.0.1"}, std::pair{"0.0.0.0", "127.0.0.1"},
                                         std::pair{"0.0.0.0", "127.0.0.5"}, std::pair{"::", "::1"},
                                         std::pair{"::1", "::1"}, std::pair{"::", "127.0.0.1"}));

// As the ranks of a large job do, each of which names its own address and no port.
TEST(Rdmacm, AThousandIdentifiersOfOneProcessConnect) {
  constexpr int kCount = 1000;
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1", kCount);
  std::vector<rdma_cm_id*> ids, requests;
  for (int i = 0; i < kCount; ++i) {
    rdma_cm_id* id = NewId(clients);
    sockaddr_storage from = Address("127.0.0.1"), to = Address("127.0.0.1", rdma_get_src_port(listener));
    ASSERT_EQ(rdma_resolve_addr(id, Raw(from), Raw(to), 2000), 0) << strerror(errno) << " at number " << i;
    clients.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, id);
    ASSERT_EQ(rdma_resolve_route(id, 2000), 0);
    clients.Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, id);
    MakeQueuePair(id);
    rdma_conn_param parameters = WithData("");
    ASSERT_EQ(rdma_connect(id, &parameters), 0) << strerror(errno) << " at number " << i;
    ids.push_back(id);
    rdma_cm_id* request = NextRequest(servers, listener);
    ASSERT_NE(request, nullptr) << " at number " << i;
    MakeQueuePair(request);
    ASSERT_EQ(rdma_accept(request, &parameters), 0);
    requests.push_back(request);
    clients.Expect(RDMA_CM_EVENT_ESTABLISHED, id);
    servers.Expect(RDMA_CM_EVENT_ESTABLISHED, request);
  }
  for (rdma_cm_id* id : ids) DestroyAll({id});
  for (rdma_cm_id* id : requests) DestroyAll({id});
  DestroyAll({listener});
}

TEST(Rdmacm, TheAckTimeoutThatWasAskedForIsTheQueuePairs) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = NewId(clients);
  uint8_t timeout = 22;
  ASSERT_EQ(rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout), 0);
  Resolve(clients, client, "127.0.0.1", rdma_get_src_port(listener));
  MakeQueuePair(client);
  rdma_conn_param parameters = WithData("");
  ASSERT_EQ(rdma_connect(client, &parameters), 0);
  rdma_cm_id* server = NextRequest(servers, listener);
  MakeQueuePair(server);
  ASSERT_EQ(rdma_accept(server, &parameters), 0);
  clients.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr unused{};
  ASSERT_EQ(ibv_query_qp(client->qp, &attributes, IBV_QP_TIMEOUT, &unused), 0);
  EXPECT_EQ(attributes.timeout, timeout);
  ASSERT_EQ(ibv_query_qp(server->qp, &attributes, IBV_QP_TIMEOUT, &unused), 0);
  EXPECT_EQ(attributes.timeout, 18) << "nothing was asked for there";
  DestroyAll({client, server, listener});
}

// UCX does so: the number of a datagram queue pair stands for none, and its own queue pairs connect by what private data say.
TEST(Rdmacm, ConnectionOfNoQueuePairCarriesPrivateData) {
  if (IwarpPersona()) GTEST_SKIP() << "the iwarp persona has no datagram queue pairs";
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = NewId(clients);
  Resolve(clients, client, "127.0.0.1", rdma_get_src_port(listener));
  ibv_cq* cq = ibv_create_cq(client->verbs, 1, nullptr, nullptr, 0);
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.cap = {2, 2, 1, 1, 0};
  attributes.qp_type = IBV_QPT_UD;
  ibv_qp* number = ibv_create_qp(client->pd, &attributes);
  ASSERT_NE(number, nullptr);
  rdma_conn_param parameters = WithData("from the client");
  parameters.qp_num = number->qp_num;
  ASSERT_EQ(rdma_connect(client, &parameters), 0) << strerror(errno);

  rdma_cm_event* request = servers.Get();
  ASSERT_NE(request, nullptr);
  ASSERT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(DataOf(request), "from the client");
  rdma_cm_id* server = request->id;
  parameters = WithData("from the server");
  parameters.qp_num = number->qp_num;
  ASSERT_EQ(rdma_accept(server, &parameters), 0) << strerror(errno);
  rdma_ack_cm_event(request);
  rdma_cm_event* response = clients.Get();
  ASSERT_NE(response, nullptr);
  EXPECT_STREQ(rdma_event_str(response->event), rdma_event_str(RDMA_CM_EVENT_CONNECT_RESPONSE));
  EXPECT_EQ(DataOf(response), "from the server");
  rdma_ack_cm_event(response);
  ASSERT_EQ(rdma_establish(client), 0) << strerror(errno);
  servers.Expect(RDMA_CM_EVENT_ESTABLISHED, server);

  for (rdma_cm_id* id : {client, server}) {
    ibv_qp_attr where{};
    int mask = 0;
    where.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(rdma_init_qp_attr(id, &where, &mask), 0) << strerror(errno);
    EXPECT_EQ(where.ah_attr.is_global, 1);
    EXPECT_EQ(where.ah_attr.port_num, 1);
    EXPECT_EQ(memcmp(where.ah_attr.grh.dgid.raw + 12, "\x7f\0\0\1", 4), 0);
    EXPECT_GE(where.path_mtu, IBV_MTU_256);
  }
  ibv_qp_attr state{};
  EXPECT_EQ(ibv_query_qp(number, &state, IBV_QP_STATE, &attributes), 0);
  EXPECT_EQ(state.qp_state, IBV_QPS_RESET) << "it stays as it was";
  EXPECT_EQ(rdma_disconnect(client), 0);
  clients.Expect(RDMA_CM_EVENT_DISCONNECTED, client);
  servers.Expect(RDMA_CM_EVENT_DISCONNECTED, server);
  EXPECT_EQ(ibv_destroy_qp(number), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  DestroyAll({client, server, listener});
}

TEST(Rdmacm, RejectCarriesPrivateData) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  const std::string why = "not today";
  ASSERT_EQ(rdma_reject(server, why.data(), static_cast<uint8_t>(why.size())), 0);
  EXPECT_EQ(rdma_destroy_id(server), 0);
  rdma_cm_event* rejected = clients.Get();
  ASSERT_NE(rejected, nullptr);
  EXPECT_EQ(rejected->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected->status, ByTheProgram());
  EXPECT_EQ(DataOf(rejected), why);
  rdma_ack_cm_event(rejected);
  DestroyAll({client, listener});
}

// The kernel's ucma_reject() takes this reason beside "consumer defined", which is 28 (RDMA_USER_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED).
TEST(Rdmacm, ARejectionForTheVendorsOptionSaysSo) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  const std::string why = "another version";
  ASSERT_EQ(rdma_reject_ece(server, why.data(), static_cast<uint8_t>(why.size())), 0);
  EXPECT_EQ(rdma_destroy_id(server), 0);
  rdma_cm_event* rejected = clients.Get();
  ASSERT_NE(rejected, nullptr);
  EXPECT_EQ(rejected->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected->status, ForTheVendorsOption());
  EXPECT_EQ(DataOf(rejected), why);
  rdma_ack_cm_event(rejected);
  DestroyAll({client, listener});
}

TEST(Rdmacm, RejectFlushesWhatTheClientPosted) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = NewId(clients);
  Resolve(clients, client, "127.0.0.1", rdma_get_src_port(listener));
  MakeQueuePair(client);
  char buffer[8];
  ibv_mr* mr = rdma_reg_msgs(client, buffer, sizeof buffer);
  ASSERT_EQ(rdma_post_recv(client, nullptr, buffer, sizeof buffer, mr), 0);
  ASSERT_EQ(rdma_connect(client, nullptr), 0) << strerror(errno);
  rdma_cm_id* server = NextRequest(servers, listener);
  ASSERT_EQ(rdma_reject(server, nullptr, 0), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, ByTheProgram());
  ibv_wc completion{};
  EXPECT_EQ(rdma_get_recv_comp(client, &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_WR_FLUSH_ERR);
  rdma_dereg_mr(mr);
  DestroyAll({client, server, listener});
}

TEST(Rdmacm, NobodyListeningIsARejection) {
  Channel clients;
  rdma_cm_id* unused = NewId(clients);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(unused, Raw(address)), 0);
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(unused));
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, NobodyListens());
  DestroyAll({client, unused});
}

TEST(Rdmacm, DestroyedListenerRejectsRequestsThatNobodySaw) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  ASSERT_TRUE(servers.Readable(kPatienceMs));
  EXPECT_EQ(rdma_destroy_id(listener), 0);
  EXPECT_FALSE(servers.Readable(0)) << "its event is dropped";
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, ByTheProgram());
  DestroyAll({client});
}

TEST(Rdmacm, DestroyedRequestIsRejected) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  EXPECT_EQ(rdma_destroy_id(server), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, ByTheProgram());
  DestroyAll({client, listener});
}

TEST(Rdmacm, RequestMayBeDestroyedBeforeItsEventIsAcknowledged) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_event* request = servers.Get();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(rdma_destroy_id(request->id), 0);
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, ByTheProgram());
  DestroyAll({client, listener});
}

// As in the kernel, the backlog counts requests that wait in the channel, and none that the program has.
TEST(Rdmacm, ARequestThatWasFetchedLeavesTheBacklog) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1", 1);
  rdma_cm_id* first = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  rdma_cm_id* second = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  ASSERT_TRUE(servers.Readable(kPatienceMs)) << "the first is neither accepted nor destroyed";
  ASSERT_EQ(rdma_reject(server, nullptr, 0), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, first, ByTheProgram());
  rdma_cm_id* next = NextRequest(servers, listener);
  ASSERT_EQ(rdma_reject(next, nullptr, 0), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, second, ByTheProgram());
  DestroyAll({first, second, server, next, listener});
}

TEST(Rdmacm, ClientThatLeavesBeforeTheAnswerIsSeenByAccept) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  DestroyAll({client});
  MakeQueuePair(server);
  // Either the loss is known already, or it shows in the event: as on Linux, that of a connection that ended.
  if (rdma_accept(server, nullptr) == 0) {
    rdma_cm_event* event = servers.Get();
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->event, RDMA_CM_EVENT_DISCONNECTED) << rdma_event_str(event->event);
    EXPECT_EQ(event->status, 0);
    rdma_ack_cm_event(event);
  } else {
    EXPECT_TRUE(errno == ECONNRESET || errno == EPIPE) << strerror(errno);
  }
  DestroyAll({server, listener});
}

// As rdma-core 44's rping -P: the thread that gets events leaves each request in one variable for another, and counts it.
TEST(Rdmacm, RequestsThatComeAtOnceReachAServerThatHandsThemOverInOneVariable) {
  constexpr int kClients = 8;
  Channel servers;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<rdma_cm_id*> clients;
  for (int i = 0; i < kClients; ++i) {
    channels.push_back(std::make_unique<Channel>());
    clients.push_back(StartClient(*channels.back(), "127.0.0.1", rdma_get_src_port(listener)));
  }
  std::atomic<rdma_cm_id*> handed_over = nullptr;
  std::counting_semaphore<> arrived(0);
  std::set<rdma_cm_id*> taken;
  std::thread worker([&] {
    for (int i = 0; i < kClients; ++i) {
      arrived.acquire();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it is busy when it is woken
      rdma_cm_id* id = handed_over;
      if (!taken.insert(id).second) continue;  // another was lost
      MakeQueuePair(id);
      EXPECT_EQ(rdma_accept(id, nullptr), 0) << strerror(errno);
    }
  });
  for (int requests = 0; requests < kClients;) {
    rdma_cm_event* event = servers.Get();
    ASSERT_NE(event, nullptr);
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      handed_over = event->id;
      ++requests;
      arrived.release();
    }
    rdma_ack_cm_event(event);
  }
  worker.join();
  EXPECT_EQ(taken.size(), kClients);
  for (int i = 0; i < kClients; ++i) channels[i]->Expect(RDMA_CM_EVENT_ESTABLISHED, clients[i]);
  for (rdma_cm_id* id : clients) DestroyAll({id});
  for (rdma_cm_id* id : taken) DestroyAll({id});
  DestroyAll({listener});
}

TEST(Rdmacm, RequestsAreToldToAServerThatCollectsThemFirst) {
  constexpr int kClients = 5;
  Channel servers, channel;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  std::vector<rdma_cm_id*> clients, requests;
  for (int i = 0; i < kClients; ++i) clients.push_back(StartClient(channel, "127.0.0.1", rdma_get_src_port(listener)));
  for (int i = 0; i < kClients; ++i) requests.push_back(NextRequest(servers, listener));
  EXPECT_EQ(std::set<rdma_cm_id*>(requests.begin(), requests.end()).size(), kClients);
  for (rdma_cm_id* id : requests) EXPECT_EQ(rdma_destroy_id(id), 0);
  for (rdma_cm_id* id : clients) DestroyAll({id});
  DestroyAll({listener});
}

TEST(Rdmacm, ManyIdentifiersOnOneChannel) {
  constexpr int kConnections = 50;
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "::");
  std::vector<rdma_cm_id*> ids;
  std::thread server([&] {
    int established = 0, disconnected = 0;
    while (disconnected < kConnections) {
      rdma_cm_event* event = servers.Get();
      if (event == nullptr) return;
      switch (event->event) {
        case RDMA_CM_EVENT_CONNECT_REQUEST:
          MakeQueuePair(event->id);
          EXPECT_EQ(rdma_accept(event->id, nullptr), 0) << strerror(errno);
          ids.push_back(event->id);
          break;
        case RDMA_CM_EVENT_ESTABLISHED:
          ++established;
          break;
        case RDMA_CM_EVENT_DISCONNECTED:
          ++disconnected;
          EXPECT_EQ(rdma_disconnect(event->id), 0);
          break;
        default:
          ADD_FAILURE() << rdma_event_str(event->event);
      }
      rdma_ack_cm_event(event);
    }
    EXPECT_EQ(established, kConnections);
  });
  std::vector<rdma_cm_id*> connecting;
  sockaddr_storage to = Address("127.0.0.1", rdma_get_src_port(listener));
  for (int i = 0; i < kConnections; ++i) {
    rdma_cm_id* id = NewId(clients);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0);
    connecting.push_back(id);
  }
  for (int established = 0; established < kConnections;) {
    rdma_cm_event* event = clients.Get();
    ASSERT_NE(event, nullptr);
    if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED) {
      EXPECT_EQ(rdma_resolve_route(event->id, 2000), 0);
    } else if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
      MakeQueuePair(event->id);
      EXPECT_EQ(rdma_connect(event->id, nullptr), 0) << strerror(errno);
    } else if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
      ++established;
    } else {
      ADD_FAILURE() << rdma_event_str(event->event);
    }
    rdma_ack_cm_event(event);
  }
  for (rdma_cm_id* id : connecting) EXPECT_EQ(rdma_disconnect(id), 0);
  server.join();
  for (rdma_cm_id* id : connecting) DestroyAll({id});
  for (rdma_cm_id* id : ids) DestroyAll({id});
  DestroyAll({listener});
}

TEST(Rdmacm, IdentifiersMayBeDestroyedWhileTheyConnect) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  for (int i = 0; i < 50; ++i) {
    rdma_cm_id* id = NewId(clients);
    sockaddr_storage to = Address("127.0.0.1", rdma_get_src_port(listener));
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0);
    if (i % 3 > 0) {
      clients.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, id);
      ASSERT_EQ(rdma_resolve_route(id, 2000), 0);
      MakeQueuePair(id);
      ASSERT_EQ(rdma_connect(id, nullptr), 0);
    }
    if (i % 3 == 2) std::this_thread::yield();
    DestroyAll({id});
  }
  EXPECT_FALSE(clients.Readable(0));
  DestroyAll({listener});
}

// --- destruction and migration ---

TEST(Rdmacm, DestroyWaitsForAcknowledgementInAnotherThread) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage to = Address("127.0.0.1", htons(1));
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0);
  rdma_cm_event* event = channel.Get();
  ASSERT_NE(event, nullptr);
  std::atomic<bool> acknowledged = false;
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));  // gives a destroy that does not wait the time to show itself
    acknowledged = true;
    rdma_ack_cm_event(event);
  });
  EXPECT_EQ(rdma_destroy_id(id), 0);
  EXPECT_TRUE(acknowledged);
  other.join();
}

TEST(Rdmacm, MigrationMovesPendingEvents) {
  Channel from, to;
  rdma_cm_id* id = NewId(from);
  rdma_cm_id* stays = NewId(from);
  sockaddr_storage address = Address("127.0.0.1", htons(1));
  ASSERT_EQ(rdma_resolve_addr(stays, nullptr, Raw(address), 2000), 0);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(address), 2000), 0);
  ASSERT_EQ(rdma_migrate_id(id, to.get()), 0);
  EXPECT_EQ(id->channel, to.get());
  to.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, id);
  from.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, stays);
  EXPECT_FALSE(from.Readable(0));
  DestroyAll({id, stays});
}

TEST(Rdmacm, EstablishedConnectionMigratesToItsOwnChannel) {
  Channel servers, clients, elsewhere;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  ASSERT_EQ(rdma_migrate_id(server, elsewhere.get()), 0);
  MakeQueuePair(server);
  ASSERT_EQ(rdma_accept(server, nullptr), 0);
  clients.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
  elsewhere.Expect(RDMA_CM_EVENT_ESTABLISHED, server);
  EXPECT_EQ(rdma_disconnect(client), 0);
  elsewhere.Expect(RDMA_CM_EVENT_DISCONNECTED, server);
  clients.Expect(RDMA_CM_EVENT_DISCONNECTED, client);
  DestroyAll({client, server, listener});
}

TEST(Rdmacm, MigrationToNoChannelMakesAnIdentifierSynchronous) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  ASSERT_EQ(rdma_migrate_id(id, nullptr), 0);
  EXPECT_EQ(rdma_migrate_id(id, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  sockaddr_storage to = Address("127.0.0.1", htons(1));
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0);
  ASSERT_NE(id->event, nullptr);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_migrate_id(id, channel.get()), 0);
  EXPECT_EQ(id->event, nullptr);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST(Rdmacm, NonBlockingChannelSaysEagain) {
  Channel channel;
  ASSERT_EQ(fcntl(channel.get()->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace weft::cm::public_api
