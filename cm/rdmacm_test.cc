// librdmacm through its public API over the real RNIC on loopback, as programs use it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

constexpr int kPatienceMs = 20000;

sockaddr_storage Address(const std::string& host, uint16_t port_network_order = 0) {
  sockaddr_storage storage{};
  if (host.find(':') != std::string::npos) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = port_network_order;
    EXPECT_EQ(inet_pton(AF_INET6, host.c_str(), &in6->sin6_addr), 1);
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&storage);
    in->sin_family = AF_INET;
    in->sin_port = port_network_order;
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &in->sin_addr), 1);
  }
  return storage;
}

sockaddr* Raw(sockaddr_storage& storage) { return reinterpret_cast<sockaddr*>(&storage); }

ibv_qp_init_attr SmallQueuePair() {
  ibv_qp_init_attr attributes{};
  attributes.cap = {4, 4, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  return attributes;
}

rdma_conn_param WithData(std::string_view data) {
  rdma_conn_param parameters{};
  parameters.private_data = data.data();
  parameters.private_data_len = static_cast<uint8_t>(data.size());
  parameters.responder_resources = 1;
  parameters.initiator_depth = 1;
  parameters.retry_count = 7;
  return parameters;
}

std::string DataOf(const rdma_cm_event* event) {
  const auto& conn = event->param.conn;
  return std::string(static_cast<const char*>(conn.private_data), conn.private_data_len);
}

// An event channel whose events must come within kPatienceMs.
class Channel {
 public:
  Channel() : channel_(rdma_create_event_channel()) { EXPECT_NE(channel_, nullptr); }
  ~Channel() { rdma_destroy_event_channel(channel_); }
  rdma_event_channel* get() { return channel_; }

  bool Readable(int timeout_ms) {
    pollfd ready{channel_->fd, POLLIN, 0};
    return poll(&ready, 1, timeout_ms) == 1;
  }
  // The caller acknowledges.
  rdma_cm_event* Get() {
    rdma_cm_event* event = nullptr;
    if (!Readable(kPatienceMs)) {
      ADD_FAILURE() << "no event came";
      return nullptr;
    }
    EXPECT_EQ(rdma_get_cm_event(channel_, &event), 0) << strerror(errno);
    return event;
  }
  void Expect(rdma_cm_event_type type, rdma_cm_id* id, int status = 0) {
    rdma_cm_event* event = Get();
    ASSERT_NE(event, nullptr);
    EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(type));
    EXPECT_EQ(event->status, status);
    EXPECT_EQ(event->id, id);
    rdma_ack_cm_event(event);
  }

 private:
  rdma_event_channel* const channel_;
};

rdma_cm_id* NewId(Channel& channel, void* context = nullptr) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, context, RDMA_PS_TCP), 0) << strerror(errno);
  return id;
}

rdma_cm_id* Listener(Channel& channel, const std::string& host, int backlog = 0, void* context = nullptr) {
  rdma_cm_id* id = NewId(channel, context);
  sockaddr_storage address = Address(host);
  EXPECT_EQ(rdma_bind_addr(id, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(id, backlog), 0) << strerror(errno);
  EXPECT_NE(rdma_get_src_port(id), 0);
  return id;
}

void Resolve(Channel& channel, rdma_cm_id* id, const std::string& host, uint16_t port) {
  sockaddr_storage to = Address(host, port);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0) << strerror(errno);
  channel.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, id);
  ASSERT_EQ(rdma_resolve_route(id, 2000), 0) << strerror(errno);
  channel.Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, id);
}

void MakeQueuePair(rdma_cm_id* id) {
  ibv_qp_init_attr attributes = SmallQueuePair();
  ASSERT_EQ(rdma_create_qp(id, nullptr, &attributes), 0) << strerror(errno);
  ASSERT_NE(id->qp, nullptr);
}

rdma_cm_id* StartClient(Channel& channel, const std::string& host, uint16_t port, const std::string& data = "") {
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, host, port);
  MakeQueuePair(id);
  rdma_conn_param parameters = WithData(data);
  EXPECT_EQ(rdma_connect(id, &parameters), 0) << strerror(errno);
  return id;
}

// The identifier of the next connection request.
rdma_cm_id* NextRequest(Channel& channel, rdma_cm_id* listener, std::string* data = nullptr) {
  rdma_cm_event* event = channel.Get();
  if (event == nullptr) return nullptr;
  EXPECT_STREQ(rdma_event_str(event->event), "RDMA_CM_EVENT_CONNECT_REQUEST");
  EXPECT_EQ(event->listen_id, listener);
  rdma_cm_id* id = event->id;
  EXPECT_NE(id, listener);
  if (data != nullptr) *data = DataOf(event);
  rdma_ack_cm_event(event);
  return id;
}

void DestroyAll(std::initializer_list<rdma_cm_id*> ids) {
  for (rdma_cm_id* id : ids) {
    rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
}

void SendAndReceive(rdma_cm_id* from, rdma_cm_id* to) {
  std::array<char, 32> out{}, in{};
  strcpy(out.data(), "over the wire");
  ibv_mr* out_mr = rdma_reg_msgs(from, out.data(), out.size());
  ibv_mr* in_mr = rdma_reg_msgs(to, in.data(), in.size());
  ASSERT_NE(out_mr, nullptr);
  ASSERT_NE(in_mr, nullptr);
  ASSERT_EQ(rdma_post_recv(to, nullptr, in.data(), in.size(), in_mr), 0);
  ASSERT_EQ(rdma_post_send(from, nullptr, out.data(), out.size(), out_mr, 0), 0);
  ibv_wc completion{};
  EXPECT_EQ(rdma_get_send_comp(from, &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_EQ(rdma_get_recv_comp(to, &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_EQ(completion.byte_len, out.size());
  EXPECT_STREQ(in.data(), out.data());
  EXPECT_EQ(rdma_dereg_mr(out_mr), 0);
  EXPECT_EQ(rdma_dereg_mr(in_mr), 0);
}

// --- connections on channels ---

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
  EXPECT_EQ(rejected->status, -ECONNREFUSED);
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
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, -ECONNREFUSED);
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
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, -ECONNREFUSED);
  DestroyAll({client, unused});
}

TEST(Rdmacm, DestroyedListenerRejectsRequestsThatNobodySaw) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  ASSERT_TRUE(servers.Readable(kPatienceMs));
  EXPECT_EQ(rdma_destroy_id(listener), 0);
  EXPECT_FALSE(servers.Readable(0)) << "its event is dropped";
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, -ECONNREFUSED);
  DestroyAll({client});
}

TEST(Rdmacm, DestroyedRequestIsRejected) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  EXPECT_EQ(rdma_destroy_id(server), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, -ECONNREFUSED);
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
  clients.Expect(RDMA_CM_EVENT_REJECTED, client, -ECONNREFUSED);
  DestroyAll({client, listener});
}

TEST(Rdmacm, BacklogOfOneAnnouncesOneRequestAtATime) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1", 1);
  rdma_cm_id* first = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  rdma_cm_id* second = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  EXPECT_FALSE(servers.Readable(100));
  ASSERT_EQ(rdma_reject(server, nullptr, 0), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, first, -ECONNREFUSED);
  rdma_cm_id* next = NextRequest(servers, listener);
  ASSERT_EQ(rdma_reject(next, nullptr, 0), 0);
  clients.Expect(RDMA_CM_EVENT_REJECTED, second, -ECONNREFUSED);
  DestroyAll({first, second, server, next, listener});
}

TEST(Rdmacm, ClientThatLeavesBeforeTheAnswerIsSeenByAccept) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  DestroyAll({client});
  MakeQueuePair(server);
  // Either the loss is known already, or it shows in the event.
  if (rdma_accept(server, nullptr) == 0) {
    rdma_cm_event* event = servers.Get();
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->event, RDMA_CM_EVENT_CONNECT_ERROR) << rdma_event_str(event->event);
    EXPECT_LT(event->status, 0);
    rdma_ack_cm_event(event);
  } else {
    EXPECT_TRUE(errno == ECONNRESET || errno == EPIPE) << strerror(errno);
  }
  DestroyAll({server, listener});
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

// --- synchronous operation ---

struct Info {
  rdma_addrinfo* list = nullptr;
  Info(const char* node, const char* service, int flags = 0) {
    rdma_addrinfo hints{};
    hints.ai_flags = flags;
    hints.ai_port_space = RDMA_PS_TCP;
    EXPECT_EQ(rdma_getaddrinfo(node, service, &hints, &list), 0);
  }
  ~Info() { rdma_freeaddrinfo(list); }
};

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

// --- addresses ---

TEST(RdmacmAddresses, BindChoosesAPortAndADevice) {
  Channel channel;
  rdma_cm_id* specific = NewId(channel);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(specific, Raw(address)), 0);
  EXPECT_NE(rdma_get_src_port(specific), 0);
  ASSERT_NE(specific->verbs, nullptr);
  EXPECT_STREQ(ibv_get_device_name(specific->verbs->device), "weft_lo");
  EXPECT_NE(specific->pd, nullptr);
  EXPECT_EQ(specific->port_num, 1);

  rdma_cm_id* wildcard = NewId(channel);
  address = Address("0.0.0.0");
  ASSERT_EQ(rdma_bind_addr(wildcard, Raw(address)), 0);
  EXPECT_NE(rdma_get_src_port(wildcard), 0);
  EXPECT_EQ(wildcard->verbs, nullptr) << "bound to no device in particular";
  DestroyAll({specific, wildcard});
}

TEST(RdmacmAddresses, BindErrors) {
  Channel channel;
  rdma_cm_id* first = NewId(channel);
  rdma_cm_id* second = NewId(channel);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(first, Raw(address)), 0);
  EXPECT_EQ(rdma_bind_addr(first, Raw(address)), -1);
  EXPECT_EQ(errno, EINVAL) << "bound already";
  sockaddr_storage taken = Address("127.0.0.1", rdma_get_src_port(first));
  EXPECT_EQ(rdma_bind_addr(second, Raw(taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  sockaddr_storage foreign = Address("192.0.2.77");
  EXPECT_EQ(rdma_bind_addr(second, Raw(foreign)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  sockaddr_storage unknown{};
  unknown.ss_family = AF_UNIX;
  EXPECT_EQ(rdma_bind_addr(second, Raw(unknown)), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_bind_addr(second, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({first, second});
}

TEST(RdmacmAddresses, ReusableAddressIsSharedUntilSomebodyListens) {
  Channel channel;
  int on = 1;
  rdma_cm_id* first = NewId(channel);
  rdma_cm_id* second = NewId(channel);
  ASSERT_EQ(rdma_set_option(first, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
  ASSERT_EQ(rdma_set_option(second, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
  sockaddr_storage address = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(first, Raw(address)), 0);
  address = Address("127.0.0.1", rdma_get_src_port(first));
  ASSERT_EQ(rdma_bind_addr(second, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(first, 1), 0);
  EXPECT_EQ(rdma_listen(second, 1), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  DestroyAll({first, second});
}

TEST(RdmacmAddresses, FamilyOnlyListenerLeavesIpv4Alone) {
  Channel channel;
  int on = 1;
  rdma_cm_id* v6 = NewId(channel);
  ASSERT_EQ(rdma_set_option(v6, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
  sockaddr_storage address = Address("::");
  ASSERT_EQ(rdma_bind_addr(v6, Raw(address)), 0);
  ASSERT_EQ(rdma_listen(v6, 1), 0) << strerror(errno);
  rdma_cm_id* v4 = NewId(channel);
  address = Address("0.0.0.0", rdma_get_src_port(v6));
  EXPECT_EQ(rdma_bind_addr(v4, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(v4, 1), 0) << strerror(errno);
  DestroyAll({v4, v6});
}

TEST(RdmacmAddresses, ListenWithoutBindChoosesEverything) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  ASSERT_EQ(rdma_listen(id, 0), 0) << strerror(errno);
  EXPECT_NE(rdma_get_src_port(id), 0);
  DestroyAll({id});
}

TEST(RdmacmAddresses, PortOfADestroyedListenerIsFreeAtOnce) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  sockaddr_storage address = Address("127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* client = StartClient(clients, "127.0.0.1", rdma_get_src_port(listener));
  rdma_cm_id* server = NextRequest(servers, listener);
  MakeQueuePair(server);
  ASSERT_EQ(rdma_accept(server, nullptr), 0);
  clients.Expect(RDMA_CM_EVENT_ESTABLISHED, client);
  servers.Expect(RDMA_CM_EVENT_ESTABLISHED, server);
  EXPECT_EQ(rdma_disconnect(server), 0);  // this side is left in TIME-WAIT
  servers.Expect(RDMA_CM_EVENT_DISCONNECTED, server);
  DestroyAll({client, server, listener});
  rdma_cm_id* again = NewId(servers);
  EXPECT_EQ(rdma_bind_addr(again, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(again, 0), 0) << strerror(errno);
  DestroyAll({again});
}

TEST(RdmacmAddresses, SourceIsChosenByRouting) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_EQ(id->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(id->route.addr.dst_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(rdma_get_dst_port(id), htons(9));
  EXPECT_STREQ(ibv_get_device_name(id->verbs->device), "weft_lo");
  EXPECT_EQ(id->route.num_paths, 0) << "iWARP has no path records";
  DestroyAll({id});
}

TEST(RdmacmAddresses, GivenSourceIsBound) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* client = NewId(clients);
  sockaddr_storage from = Address("127.0.0.7"), to = Address("127.0.0.1", rdma_get_src_port(listener));
  ASSERT_EQ(rdma_resolve_addr(client, Raw(from), Raw(to), 2000), 0) << strerror(errno);
  clients.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, client);
  ASSERT_EQ(rdma_resolve_route(client, 2000), 0);
  clients.Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, client);
  MakeQueuePair(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = NextRequest(servers, listener);
  EXPECT_EQ(server->route.addr.dst_sin.sin_addr.s_addr, inet_addr("127.0.0.7"));
  DestroyAll({client, server, listener});
}

TEST(RdmacmAddresses, BoundPortIsTheConnectionsSourcePort) {
  Channel servers, clients;
  rdma_cm_id* listener = Listener(servers, "127.0.0.1");
  rdma_cm_id* probe = NewId(clients);
  sockaddr_storage from = Address("127.0.0.1");
  ASSERT_EQ(rdma_bind_addr(probe, Raw(from)), 0);
  from = Address("127.0.0.1", rdma_get_src_port(probe));
  DestroyAll({probe});
  rdma_cm_id* client = NewId(clients);
  ASSERT_EQ(rdma_bind_addr(client, Raw(from)), 0);
  Resolve(clients, client, "127.0.0.1", rdma_get_src_port(listener));
  MakeQueuePair(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0) << strerror(errno);
  rdma_cm_id* server = NextRequest(servers, listener);
  EXPECT_EQ(rdma_get_dst_port(server), reinterpret_cast<sockaddr_in*>(&from)->sin_port);
  DestroyAll({client, server, listener});
}

TEST(RdmacmAddresses, UnreachableDestinationIsAnEvent) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage to = Address("fe80::1", htons(9));  // link-local without a scope
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 500), 0);
  channel.Expect(RDMA_CM_EVENT_ADDR_ERROR, id, -EINVAL);
  Resolve(channel, id, "::1", htons(9));  // and the identifier can try again
  DestroyAll({id});
}

TEST(RdmacmAddresses, ResolveErrors) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage v4 = Address("127.0.0.1", htons(9)), v6 = Address("::1", htons(9));
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, nullptr, 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_resolve_addr(id, Raw(v6), Raw(v4), 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_resolve_route(id, 100), -1) << "no address resolved";
  EXPECT_EQ(errno, EINVAL);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, Raw(v4), 100), -1) << "resolved already";
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({id});
}

// --- misuse ---

TEST(RdmacmMisuse, CallsInTheWrongStateAreInvalid) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  rdma_conn_param parameters{};
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_accept(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_reject(id, nullptr, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_disconnect(id), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_establish(id), -1);
  EXPECT_EQ(errno, EINVAL);
  ibv_qp_init_attr attributes = SmallQueuePair();
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1) << "bound to no device";
  EXPECT_EQ(errno, EINVAL);
  ibv_qp_attr attr{};
  int mask;
  EXPECT_EQ(rdma_init_qp_attr(id, &attr, &mask), -1);
  EXPECT_EQ(errno, EINVAL);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_EQ(rdma_connect(id, &parameters), -1) << "without a queue pair";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_listen(id, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({id});
}

TEST(RdmacmMisuse, NullPointersAreInvalid) {
  EXPECT_EQ(rdma_create_id(nullptr, nullptr, nullptr, RDMA_PS_TCP), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_destroy_id(nullptr), -1);
  EXPECT_EQ(rdma_get_cm_event(nullptr, nullptr), -1);
  EXPECT_EQ(rdma_ack_cm_event(nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_event_channel(nullptr);
  rdma_freeaddrinfo(nullptr);
  rdma_free_devices(nullptr);
}

TEST(RdmacmMisuse, OtherPortSpacesAreRefused) {
  Channel channel;
  rdma_cm_id* id = nullptr;
  for (rdma_port_space space : {RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB}) {
    EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, space), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, static_cast<rdma_port_space>(7)), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(RdmacmMisuse, MoreReadsThanTheDeviceHasAreInvalid) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  MakeQueuePair(id);
  ibv_device_attr limits{};
  ASSERT_EQ(ibv_query_device(id->verbs, &limits), 0);
  ASSERT_LT(limits.max_qp_rd_atom, 254);
  rdma_conn_param parameters{};
  parameters.responder_resources = static_cast<uint8_t>(limits.max_qp_rd_atom + 1);
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  parameters = {};
  parameters.initiator_depth = static_cast<uint8_t>(limits.max_qp_init_rd_atom + 1);
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  DestroyAll({id});
}

TEST(RdmacmMisuse, OneQueuePairOfTheRightDevice) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  MakeQueuePair(id);
  ibv_qp_init_attr attributes = SmallQueuePair();
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_qp(id);
  EXPECT_EQ(id->qp, nullptr);
  EXPECT_EQ(id->send_cq, nullptr);
  EXPECT_EQ(id->recv_cq_channel, nullptr);
  MakeQueuePair(id);
  DestroyAll({id});
}

TEST(RdmacmMisuse, AbandonedClientGetsItsWorkFlushed) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  MakeQueuePair(id);
  char buffer[8];
  ibv_mr* mr = rdma_reg_msgs(id, buffer, sizeof buffer);
  ASSERT_EQ(rdma_post_recv(id, nullptr, buffer, sizeof buffer, mr), 0);
  EXPECT_EQ(rdma_disconnect(id), -1) << "never connected";
  ibv_wc completion{};
  EXPECT_EQ(rdma_get_recv_comp(id, &completion), 1);
  EXPECT_EQ(completion.status, IBV_WC_WR_FLUSH_ERR);
  rdma_dereg_mr(mr);
  DestroyAll({id});
}

// --- the rest ---

TEST(RdmacmOptions, KnownOptionsAreCheckedAndUnknownOnesRefused) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  uint8_t byte = 8;
  int integer = 1;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, sizeof byte), 0);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &integer, sizeof integer), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, sizeof byte), 0);
  byte = 32;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, sizeof byte), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, 77, &integer, sizeof integer), -1);
  EXPECT_EQ(errno, ENOSYS);
  EXPECT_EQ(rdma_set_option(id, 9, RDMA_OPTION_ID_TOS, &byte, sizeof byte), -1);
  EXPECT_EQ(errno, ENOSYS);
  DestroyAll({id});
}

TEST(RdmacmOptions, MulticastAndEce) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  sockaddr_storage group = Address("239.0.0.1");
  EXPECT_EQ(rdma_join_multicast(id, Raw(group), nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rdma_leave_multicast(id, Raw(group)), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_ece ece{1, 2, 3};
  EXPECT_EQ(rdma_set_local_ece(id, &ece), 0);
  EXPECT_EQ(rdma_get_remote_ece(id, &ece), 0);
  EXPECT_EQ(ece.vendor_id, 0u);
  DestroyAll({id});
}

TEST(RdmacmQueuePairs, InitAttributesBringAQueuePairToInit) {
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  ibv_cq* cq = ibv_create_cq(id->verbs, 8, nullptr, nullptr, 0);
  ibv_qp_init_attr init = SmallQueuePair();
  init.send_cq = init.recv_cq = cq;
  ibv_qp* qp = ibv_create_qp(id->pd, &init);
  ASSERT_NE(qp, nullptr);
  for (ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = state;
    ASSERT_EQ(rdma_init_qp_attr(id, &attributes, &mask), 0);
    EXPECT_EQ(ibv_modify_qp(qp, &attributes, mask), 0) << "asked for state " << state;
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  DestroyAll({id});
}

TEST(RdmacmDevices, ContextsAreTheOnesThatIdentifiersShow) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_GT(count, 0);
  EXPECT_EQ(list[count], nullptr);
  Channel channel;
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, "127.0.0.1", htons(9));
  EXPECT_NE(std::find(list, list + count, id->verbs), list + count);
  rdma_free_devices(list);
  DestroyAll({id});
}

TEST(RdmacmAddrinfo, ActiveAndPassive) {
  Info active("127.0.0.1", "7471");
  ASSERT_NE(active.list, nullptr);
  EXPECT_EQ(active.list->ai_family, AF_INET);
  EXPECT_EQ(active.list->ai_qp_type, IBV_QPT_RC);
  EXPECT_EQ(active.list->ai_port_space, RDMA_PS_TCP);
  EXPECT_EQ(active.list->ai_src_len, 0u);
  ASSERT_EQ(active.list->ai_dst_len, sizeof(sockaddr_in));
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(active.list->ai_dst_addr)->sin_port, htons(7471));
  EXPECT_EQ(active.list->ai_next, nullptr);
  Info passive(nullptr, "7471", RAI_PASSIVE);
  ASSERT_NE(passive.list, nullptr);
  EXPECT_TRUE(passive.list->ai_flags & RAI_PASSIVE);
  EXPECT_NE(passive.list->ai_src_len, 0u);
  EXPECT_EQ(passive.list->ai_dst_len, 0u);
}

TEST(RdmacmAddrinfo, SourceOfTheHintsComesAlong) {
  sockaddr_storage source = Address("127.0.0.3");
  rdma_addrinfo hints{};
  hints.ai_src_addr = Raw(source);
  hints.ai_src_len = sizeof(sockaddr_in);
  rdma_addrinfo* list = nullptr;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &list), 0);
  ASSERT_EQ(list->ai_src_len, sizeof(sockaddr_in));
  EXPECT_EQ(memcmp(list->ai_src_addr, &source, sizeof(sockaddr_in)), 0);
  rdma_freeaddrinfo(list);
}

TEST(RdmacmAddrinfo, Errors) {
  rdma_addrinfo* list = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(nullptr, nullptr, nullptr, &list), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  EXPECT_EQ(rdma_getaddrinfo("no.such.host", "1", &hints, &list), EAI_NONAME);
  hints.ai_flags = 1 << 20;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &list), EAI_BADFLAGS);
  hints = {};
  hints.ai_qp_type = IBV_QPT_UD;
  hints.ai_port_space = RDMA_PS_TCP;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &list), EAI_SOCKTYPE);
}

TEST(Rsockets, AreRefusedButPollServesOrdinaryDescriptors) {
  EXPECT_EQ(rsocket(AF_INET, SOCK_STREAM, 0), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rclose(0), -1);
  EXPECT_EQ(errno, EBADF);
  Channel channel;
  pollfd idle{channel.get()->fd, POLLIN, 0};
  EXPECT_EQ(rpoll(&idle, 1, 0), 0);
}

TEST(RdmacmStrings, EveryEventHasAName) {
  for (int event = RDMA_CM_EVENT_ADDR_RESOLVED; event <= RDMA_CM_EVENT_TIMEWAIT_EXIT; ++event) {
    EXPECT_EQ(std::string(rdma_event_str(static_cast<rdma_cm_event_type>(event))).rfind("RDMA_CM_EVENT_", 0), 0u);
  }
  EXPECT_STREQ(rdma_event_str(static_cast<rdma_cm_event_type>(16)), "UNKNOWN EVENT");
}

}  // namespace
