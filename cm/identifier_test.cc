// Identifiers against an engine that does what the test says, for what is hard to bring about over real sockets.
#include "cm/identifier.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weft::cm {
namespace {

using sim::CmEvent;
using transport::SocketAddress;

class FakeEndpoint : public sim::Endpoint {
 public:
  void SetObserver(std::shared_ptr<sim::CmObserver> observer) override {
    observer_ = std::move(observer);
    while (observer_ != nullptr && !early.empty()) {
      CmEvent event = std::move(early.front());
      early.erase(early.begin());
      observer_->OnCmEvent(std::move(event));
    }
  }
  int Connect(const SocketAddress& from, const SocketAddress& to, ibv_qp* with,
              const sim::ConnectParameters& given) override {
    connect_local = from;
    remote = to;
    qp = with;
    parameters = given;
    return connect_result;
  }
  int Accept(ibv_qp* with, const sim::ConnectParameters& given) override {
    qp = with;
    parameters = given;
    return accept_result;
  }
  int Reject(const std::vector<uint8_t>&, CmEvent::Reason) override {
    rejected = true;
    return 0;
  }
  int Disconnect() override { return disconnect_result; }
  void Close() override {
    closed = true;
    if (on_close) on_close();
  }
  SocketAddress local_address() const override { return local; }
  SocketAddress remote_address() const override { return remote; }

  void Tell(CmEvent event) {
    ASSERT_NE(observer_, nullptr);
    observer_->OnCmEvent(std::move(event));
  }
  bool observed() const { return observer_ != nullptr; }

  SocketAddress connect_local, local, remote;
  ibv_qp* qp = nullptr;
  sim::ConnectParameters parameters;
  int connect_result = 0, accept_result = 0, disconnect_result = 0;
  bool closed = false, rejected = false;
  std::vector<CmEvent> early;
  std::function<void()> on_close;

 private:
  std::shared_ptr<sim::CmObserver> observer_;
};

class FakeListener : public sim::CmListener {
 public:
  SocketAddress local_address() const override { return local; }
  void Close() override { closed = true; }

  SocketAddress local;
  int backlog = 0;
  bool only_v6 = false, closed = false;
  std::shared_ptr<sim::CmObserver> observer;
};

class FakeEngine : public sim::CmApi {
 public:
  static FakeEngine& Get() {
    static FakeEngine engine;
    return engine;
  }
  std::shared_ptr<sim::Endpoint> CreateEndpoint() override {
    endpoint = std::make_shared<FakeEndpoint>();
    endpoint->connect_result = connect_error;
    return endpoint;
  }
  Result<std::shared_ptr<sim::CmListener>, int> Listen(const SocketAddress& local, int backlog, bool only_v6, bool,
                                                       std::shared_ptr<sim::CmObserver> observer) override {
    if (listen_error != 0) return listen_error;
    listener = std::make_shared<FakeListener>();
    listener->local = local;
    listener->backlog = backlog;
    listener->only_v6 = only_v6;
    listener->observer = std::move(observer);
    return std::shared_ptr<sim::CmListener>(listener);
  }
  transport::Network& network() override { abort(); }

  std::shared_ptr<FakeEndpoint> endpoint;  // the last one
  std::shared_ptr<FakeListener> listener;
  int listen_error = 0, connect_error = 0;
};

// --- a libibverbs of one device, weft_lo with 127.0.0.1 ---

struct FakeVerbs {
  ibv_device device{};
  verbs_context context{};
  ibv_pd pd{};
  ibv_qp qp{};
  ibv_qp_state qp_state = IBV_QPS_RESET;
  std::vector<ibv_qp_state> transitions;
  int modify_result = 0;
  int completion_queues = 0;

  static FakeVerbs& Get() {
    static FakeVerbs verbs;
    return verbs;
  }
  FakeVerbs() {
    context.context.device = &device;
    strcpy(device.name, "weft_lo");
    device.transport_type = IBV_TRANSPORT_IWARP;
    pd.context = &context.context;
    qp.context = &context.context;
    qp.pd = &pd;
    qp.qp_num = 17;
  }
};

}  // namespace
}  // namespace weft::cm

using weft::cm::FakeVerbs;

extern "C" {

weft::sim::CmApi* weft_private_cm_api(int) { return &weft::cm::FakeEngine::Get(); }
ibv_qp* weft_private_find_qp(uint32_t number) { return number == 17 ? &FakeVerbs::Get().qp : nullptr; }

ibv_device** ibv_get_device_list(int* count) {
  static ibv_device* list[] = {&FakeVerbs::Get().device, nullptr};
  *count = 1;
  return list;
}
void ibv_free_device_list(ibv_device**) {}
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
ibv_context* ibv_open_device(ibv_device*) { return &FakeVerbs::Get().context.context; }
int ibv_close_device(ibv_context*) { return 0; }
int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->max_qp_rd_atom = 16;
  attributes->max_qp_init_rd_atom = 8;
  return 0;
}
#undef ibv_query_port
int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
  auto* full = reinterpret_cast<ibv_port_attr*>(attributes);
  full->gid_tbl_len = 1;
  full->active_mtu = IBV_MTU_4096;
  return 0;
}
int ibv_query_gid(ibv_context*, uint8_t, int, ibv_gid* gid) {
  *gid = weft::cm::ToGid(weft::transport::SocketAddress::Parse("127.0.0.1", 0).value());
  return 0;
}
int _ibv_query_gid_ex(ibv_context*, uint32_t, uint32_t, ibv_gid_entry*, uint32_t, size_t) { return EINVAL; }
int ibv_attach_mcast(ibv_qp*, const ibv_gid*, uint16_t) { return 0; }
int ibv_detach_mcast(ibv_qp*, const ibv_gid*, uint16_t) { return 0; }
ibv_pd* ibv_alloc_pd(ibv_context*) { return &FakeVerbs::Get().pd; }
ibv_comp_channel* ibv_create_comp_channel(ibv_context*) { return new ibv_comp_channel{}; }
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  delete channel;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context*, int, void*, ibv_comp_channel*, int) {
  ++FakeVerbs::Get().completion_queues;
  return new ibv_cq{};
}
int ibv_destroy_cq(ibv_cq* cq) {
  --FakeVerbs::Get().completion_queues;
  delete cq;
  return 0;
}
ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr*) { return &FakeVerbs::Get().qp; }
int ibv_destroy_qp(ibv_qp*) { return 0; }
int ibv_modify_qp(ibv_qp*, ibv_qp_attr* attributes, int) {
  FakeVerbs& verbs = FakeVerbs::Get();
  if (verbs.modify_result != 0) return verbs.modify_result;
  verbs.transitions.push_back(attributes->qp_state);
  verbs.qp_state = attributes->qp_state;
  return 0;
}
int ibv_query_qp(ibv_qp*, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  attributes->qp_state = FakeVerbs::Get().qp_state;
  return 0;
}
ibv_srq* ibv_create_srq(ibv_pd*, ibv_srq_init_attr*) {
  errno = EOPNOTSUPP;
  return nullptr;
}
int ibv_destroy_srq(ibv_srq*) { return 0; }

}  // extern "C"

namespace weft::cm {
namespace {

class Identifiers : public testing::Test {
 protected:
  void SetUp() override {
    FakeVerbs& verbs = FakeVerbs::Get();
    verbs.device.transport_type = IBV_TRANSPORT_IWARP;
    verbs.qp_state = IBV_QPS_RESET;
    verbs.transitions.clear();
    verbs.modify_result = 0;
    FakeEngine::Get().listen_error = FakeEngine::Get().connect_error = 0;
    channel_ = rdma_create_event_channel();
    ASSERT_NE(channel_, nullptr);
  }
  void TearDown() override {
    EXPECT_FALSE(Readable());
    rdma_destroy_event_channel(channel_);
    FakeEngine::Get().listener.reset();
    FakeEngine::Get().endpoint.reset();
    EXPECT_EQ(FakeVerbs::Get().completion_queues, 0);
  }

  bool Readable() {
    pollfd ready{channel_->fd, POLLIN, 0};
    return poll(&ready, 1, 0) == 1;
  }
  rdma_cm_event* Get() {
    rdma_cm_event* event = nullptr;
    EXPECT_TRUE(Readable()) << "no event";
    if (!Readable()) return nullptr;
    EXPECT_EQ(rdma_get_cm_event(channel_, &event), 0);
    return event;
  }
  void Expect(rdma_cm_event_type type, int status) {
    rdma_cm_event* event = Get();
    ASSERT_NE(event, nullptr);
    EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(type));
    EXPECT_EQ(event->status, status);
    rdma_ack_cm_event(event);
  }
  rdma_cm_id* NewId() {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
    return id;
  }
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  rdma_cm_id* Resolved() {
    rdma_cm_id* id = NewId();
    sockaddr_in to = Loopback(7);
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 100), 0);
    Expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    EXPECT_EQ(rdma_resolve_route(id, 100), 0);
    Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    return id;
  }
  static void MakeQueuePair(rdma_cm_id* id) {
    ibv_qp_init_attr attributes{};
    attributes.cap = {1, 1, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    ASSERT_EQ(rdma_create_qp(id, nullptr, &attributes), 0);
  }
  rdma_cm_id* Connecting() {
    rdma_cm_id* id = Resolved();
    MakeQueuePair(id);
    EXPECT_EQ(rdma_connect(id, nullptr), 0);
    return id;
  }
  rdma_cm_id* Listening() {
    rdma_cm_id* id = NewId();
    sockaddr_in at = Loopback(0);
    EXPECT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&at)), 0);
    EXPECT_EQ(rdma_listen(id, 5), 0);
    return id;
  }
  static std::shared_ptr<FakeEndpoint> Request(const char* local = "127.0.0.1", std::function<void()> on_close = {}) {
    auto endpoint = std::make_shared<FakeEndpoint>();
    endpoint->on_close = std::move(on_close);
    endpoint->local = SocketAddress::Parse(local, 7).value();
    endpoint->remote = SocketAddress::Parse("127.0.0.1", 4000).value();
    CmEvent event;
    event.kind = CmEvent::Kind::kConnectRequest;
    event.endpoint = endpoint;
    event.ird = 3;
    event.ord = 300;
    event.private_data.assign(400, 'x');
    FakeEngine::Get().listener->observer->OnCmEvent(std::move(event));
    return endpoint;
  }
  static void Destroy(rdma_cm_id* id) {
    rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }

  rdma_event_channel* channel_ = nullptr;
};

CmEvent Of(CmEvent::Kind kind, int error) {
  CmEvent event;
  event.kind = kind;
  event.error = error;
  return event;
}

TEST_F(Identifiers, ErrorsOfTheEngineBecomeEventsWithNegativeErrno) {
  const std::tuple<CmEvent::Kind, int, rdma_cm_event_type> cases[] = {
      {CmEvent::Kind::kRejected, ECONNREFUSED, RDMA_CM_EVENT_REJECTED},
      {CmEvent::Kind::kRejected, ECONNRESET, RDMA_CM_EVENT_REJECTED},
      {CmEvent::Kind::kUnreachable, ETIMEDOUT, RDMA_CM_EVENT_UNREACHABLE},
      {CmEvent::Kind::kUnreachable, EHOSTUNREACH, RDMA_CM_EVENT_UNREACHABLE},
      {CmEvent::Kind::kConnectError, EPROTO, RDMA_CM_EVENT_CONNECT_ERROR},
  };
  for (const auto& [kind, error, type] : cases) {
    rdma_cm_id* id = Connecting();
    FakeEngine::Get().endpoint->Tell(Of(kind, error));
    Expect(type, -error);
    EXPECT_EQ(rdma_connect(id, nullptr), -1) << "an identifier connects once";
    EXPECT_EQ(errno, EINVAL);
    Destroy(id);
    EXPECT_TRUE(FakeEngine::Get().endpoint->closed);
    EXPECT_FALSE(FakeEngine::Get().endpoint->observed());
  }
}

// rdma_get_cm_event(3): "under InfiniBand, this is the reject reason carried in the IB CM REJ message".
TEST_F(Identifiers, ARejectionHasTheReasonOfInfiniBandsCmWhereTheDeviceIsOne) {
  FakeVerbs::Get().device.transport_type = IBV_TRANSPORT_IB;
  for (const auto& [reason, error, status] : {std::tuple(CmEvent::Reason::kConsumerDefined, ECONNREFUSED, 28),
                                              std::tuple(CmEvent::Reason::kConsumerDefined, ECONNRESET, 28),
                                              std::tuple(CmEvent::Reason::kVendorOption, ECONNREFUSED, 35),
                                              std::tuple(CmEvent::Reason::kInvalidServiceId, ECONNREFUSED, 8)}) {
    rdma_cm_id* id = Connecting();
    FakeEngine::Get().endpoint->Tell({.kind = CmEvent::Kind::kRejected, .reason = reason, .error = error});
    Expect(RDMA_CM_EVENT_REJECTED, status);
    Destroy(id);
  }
  rdma_cm_id* id = Connecting();
  FakeEngine::Get().endpoint->Tell(Of(CmEvent::Kind::kUnreachable, ETIMEDOUT));
  Expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
  Destroy(id);
}

TEST_F(Identifiers, ConnectThatTheEngineRefusesCanBeTriedAgain) {
  rdma_cm_id* id = Resolved();
  MakeQueuePair(id);
  FakeEngine::Get().connect_error = EMFILE;
  EXPECT_EQ(rdma_connect(id, nullptr), -1);
  EXPECT_EQ(errno, EMFILE);
  const auto refused = FakeEngine::Get().endpoint;
  EXPECT_TRUE(refused->closed);
  EXPECT_FALSE(refused->observed());
  FakeEngine::Get().connect_error = 0;
  EXPECT_EQ(rdma_connect(id, nullptr), 0);
  Destroy(id);
}

TEST_F(Identifiers, MoreReadsThanTheDeviceHasAreInvalid) {
  rdma_cm_id* id = Resolved();
  MakeQueuePair(id);
  rdma_conn_param parameters{};
  parameters.responder_resources = 17;
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  parameters.responder_resources = 16;
  EXPECT_EQ(rdma_connect(id, &parameters), 0);
  Destroy(id);
}

TEST_F(Identifiers, ReadsLeftOpenAreWhatTheDeviceHas) {
  rdma_cm_id* id = Connecting();
  EXPECT_EQ(FakeEngine::Get().endpoint->parameters.ird, 16);
  EXPECT_EQ(FakeEngine::Get().endpoint->parameters.ord, 8);
  EXPECT_EQ(FakeEngine::Get().endpoint->qp, id->qp);
  EXPECT_EQ(FakeEngine::Get().endpoint->remote.ToString(), "127.0.0.1:7");
  Destroy(id);
}

TEST_F(Identifiers, RequestIsClippedToTheSizesOfThePublicStructures) {
  rdma_cm_id* listener = Listening();
  const auto endpoint = Request();
  rdma_cm_event* event = Get();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->param.conn.private_data_len, 255);
  EXPECT_EQ(event->param.conn.responder_resources, 3);
  EXPECT_EQ(event->param.conn.initiator_depth, 255);
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  MakeQueuePair(id);
  ASSERT_EQ(rdma_accept(id, nullptr), 0);
  EXPECT_EQ(endpoint->parameters.ird, 3) << "as the peer asked";
  EXPECT_EQ(endpoint->parameters.ord, 8) << "as far as the device can";
  Destroy(id);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

TEST_F(Identifiers, RequestNotGottenIsClosedWithItsListener) {
  rdma_cm_id* listener = Listening();
  const auto first = Request(), second = Request();
  EXPECT_FALSE(first->closed);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
  EXPECT_TRUE(first->closed);
  EXPECT_TRUE(second->closed);
  EXPECT_TRUE(FakeEngine::Get().listener->closed);
  const auto late = Request();
  EXPECT_TRUE(late->closed) << "came while the listener was being closed";
}

TEST_F(Identifiers, RequestNotGottenIsClosedWithItsChannel) {
  rdma_cm_id* listener = Listening();
  const auto endpoint = Request();
  rdma_destroy_event_channel(channel_);
  EXPECT_TRUE(endpoint->closed);
  // The engine announces the next request as soon as there is room for it, from within Close.
  std::shared_ptr<FakeEndpoint> next;
  const auto late = Request("127.0.0.1", [&] { next = Request(); });
  EXPECT_TRUE(late->closed);
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(next->closed);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
  channel_ = rdma_create_event_channel();
}

TEST_F(Identifiers, GetAfterTheChannelIsDestroyedFailsIfItDidNotBlock) {
  ASSERT_EQ(fcntl(channel_->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_event_channel* const gone = channel_;
  rdma_destroy_event_channel(channel_);
  channel_ = rdma_create_event_channel();
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(gone, &event), -1);
  EXPECT_EQ(errno, EBADF);
}

// An event thread that comes back for the next event as another thread destroys the channel (rping): it must not be told of an error,
// no more than one that waits there already.
TEST_F(Identifiers, GetAfterTheChannelIsDestroyedWaitsIfItBlocked) {
  struct sigaction nothing = {}, before = {};
  nothing.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &nothing, &before), 0);
  rdma_event_channel* const gone = channel_;
  rdma_destroy_event_channel(channel_);
  channel_ = rdma_create_event_channel();
  std::atomic<bool> interrupted = false, returned = false;
  std::atomic<int> error = 0;
  std::thread late([&] {
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(gone, &event), -1);
    error = errno;
    EXPECT_TRUE(interrupted) << "it returned although nothing interrupted it: " << strerror(error);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  interrupted = true;
  while (!returned) {  // again and again: a signal that comes before it waits is lost
    pthread_kill(late.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  late.join();
  EXPECT_EQ(error, EINTR);
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(Identifiers, RequestAfterAClosedChannelComesOnTheNextOne) {
  rdma_cm_id* listener = Listening();
  const auto lost = Request(), held = Request();
  rdma_destroy_event_channel(channel_);
  channel_ = rdma_create_event_channel();
  ASSERT_EQ(rdma_migrate_id(listener, channel_), 0);
  EXPECT_TRUE(lost->closed);
  EXPECT_TRUE(held->closed);
  const auto next = Request();
  rdma_cm_event* event = Get();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

TEST_F(Identifiers, RequestToAnAddressOfNoDeviceIsRejected) {
  rdma_cm_id* listener = Listening();
  const auto endpoint = Request("192.0.2.1");
  const auto good = Request();
  rdma_cm_event* event = Get();
  ASSERT_NE(event, nullptr);
  EXPECT_TRUE(endpoint->closed);
  EXPECT_EQ(event->id->route.addr.dst_sin.sin_port, htons(4000));
  EXPECT_EQ(rdma_destroy_id(event->id), 0);
  rdma_ack_cm_event(event);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

TEST_F(Identifiers, PeerThatLeftBeforeTheAnswerIsReportedByAcceptOnly) {
  rdma_cm_id* listener = Listening();
  const auto endpoint = Request();
  endpoint->early.push_back(Of(CmEvent::Kind::kConnectError, ECONNRESET));
  rdma_cm_event* event = Get();
  ASSERT_NE(event, nullptr);
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  EXPECT_FALSE(Readable());
  MakeQueuePair(id);
  EXPECT_EQ(rdma_accept(id, nullptr), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(rdma_reject(id, nullptr, 0), 0);
  EXPECT_FALSE(endpoint->rejected);
  Destroy(id);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

TEST_F(Identifiers, FailedAcceptFailsTheQueuePair) {
  rdma_cm_id* listener = Listening();
  const auto endpoint = Request();
  endpoint->accept_result = ECONNRESET;
  rdma_cm_event* event = Get();
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  MakeQueuePair(id);
  EXPECT_EQ(rdma_accept(id, nullptr), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(FakeVerbs::Get().qp_state, IBV_QPS_ERR);
  Destroy(id);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

TEST_F(Identifiers, ListenErrorLeavesTheIdentifierBound) {
  rdma_cm_id* id = NewId();
  sockaddr_in at = Loopback(0);
  ASSERT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&at)), 0);
  FakeEngine::Get().listen_error = EADDRINUSE;
  EXPECT_EQ(rdma_listen(id, 1), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  FakeEngine::Get().listen_error = 0;
  EXPECT_EQ(rdma_listen(id, 0), 0);
  EXPECT_EQ(FakeEngine::Get().listener->backlog, 1024) << "0 asks for a sensible one";
  EXPECT_EQ(FakeEngine::Get().listener->local.port(), ntohs(rdma_get_src_port(id)));
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(Identifiers, DisconnectThatThePeerWasFasterWithIsNoError) {
  rdma_cm_id* id = Connecting();
  FakeEngine::Get().endpoint->Tell(Of(CmEvent::Kind::kEstablished, 0));
  Expect(RDMA_CM_EVENT_ESTABLISHED, 0);
  FakeEngine::Get().endpoint->disconnect_result = ENOTCONN;
  EXPECT_EQ(rdma_disconnect(id), 0);
  FakeEngine::Get().endpoint->Tell(Of(CmEvent::Kind::kDisconnected, 0));
  Expect(RDMA_CM_EVENT_DISCONNECTED, 0);
  EXPECT_EQ(rdma_disconnect(id), 0);
  Destroy(id);
}

TEST_F(Identifiers, EventsOfADestroyedIdentifierAreDropped) {
  rdma_cm_id* id = Connecting();
  FakeEngine::Get().endpoint->Tell(Of(CmEvent::Kind::kEstablished, 0));
  EXPECT_TRUE(Readable());
  Destroy(id);
  EXPECT_FALSE(Readable());
}

TEST_F(Identifiers, QueuePairIsFoundByItsNumber) {
  rdma_cm_id* id = Resolved();
  rdma_conn_param parameters{};
  parameters.qp_num = 18;
  EXPECT_EQ(rdma_connect(id, &parameters), -1);
  EXPECT_EQ(errno, EINVAL);
  parameters.qp_num = 17;
  ASSERT_EQ(rdma_connect(id, &parameters), 0);
  EXPECT_EQ(FakeEngine::Get().endpoint->qp, &FakeVerbs::Get().qp);
  EXPECT_EQ(FakeVerbs::Get().qp_state, IBV_QPS_INIT) << "it was in RESET";
  EXPECT_EQ(rdma_establish(id), -1) << "not connected yet";
  FakeEngine::Get().endpoint->Tell(Of(CmEvent::Kind::kEstablished, 0));
  Expect(RDMA_CM_EVENT_ESTABLISHED, 0);

  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(rdma_init_qp_attr(id, &attributes, &mask), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS) << "the engine brought it there";
  EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS) << "which a step through INIT would have set";
  EXPECT_EQ(attributes.qp_access_flags & IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
  attributes.qp_state = IBV_QPS_RTR;
  ASSERT_EQ(rdma_init_qp_attr(id, &attributes, &mask), 0);
  EXPECT_EQ(mask, IBV_QP_STATE);
  EXPECT_EQ(rdma_establish(id), 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(Identifiers, InfiniBandProgramsSeeAConnectResponseAndAPath) {
  FakeVerbs::Get().device.transport_type = IBV_TRANSPORT_IB;
  rdma_cm_id* id = Resolved();
  ASSERT_EQ(id->route.num_paths, 1);
  EXPECT_EQ(id->route.path_rec->mtu, IBV_MTU_4096);
  EXPECT_EQ(memcmp(&id->route.path_rec->sgid, &id->route.addr.addr.ibaddr.sgid, sizeof(ibv_gid)), 0);
  rdma_conn_param parameters{};
  parameters.qp_num = 17;
  ASSERT_EQ(rdma_connect(id, &parameters), 0);
  FakeEngine::Get().endpoint->Tell(Of(CmEvent::Kind::kEstablished, 0));
  Expect(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
  EXPECT_EQ(rdma_establish(id), 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(Identifiers, QueuePairThatCannotBeInitialisedLeavesNothingBehind) {
  rdma_cm_id* id = Resolved();
  FakeVerbs::Get().modify_result = EINVAL;
  ibv_qp_init_attr attributes{};
  attributes.cap = {1, 1, 1, 1, 0};
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attributes), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(id->qp, nullptr);
  EXPECT_EQ(FakeVerbs::Get().completion_queues, 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(Identifiers, SharedReceiveQueuesSayWhatVerbsSays) {
  rdma_cm_id* id = Resolved();
  ibv_srq_init_attr attributes{};
  EXPECT_EQ(rdma_create_srq(id, nullptr, &attributes), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_srq_init_attr_ex extended{};
  EXPECT_EQ(rdma_create_srq_ex(id, &extended), -1);
  EXPECT_EQ(errno, EINVAL);
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  extended.srq_type = IBV_SRQT_XRC;
  EXPECT_EQ(rdma_create_srq_ex(id, &extended), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(Identifiers, MappedIpv4PeerIsShownAsIpv4) {
  rdma_cm_id* listener = Listening();
  auto endpoint = std::make_shared<FakeEndpoint>();
  endpoint->local = SocketAddress::Parse("::ffff:127.0.0.1", 7).value();
  endpoint->remote = SocketAddress::Parse("::ffff:127.0.0.1", 4000).value();
  CmEvent request;
  request.kind = CmEvent::Kind::kConnectRequest;
  request.endpoint = endpoint;
  FakeEngine::Get().listener->observer->OnCmEvent(std::move(request));
  rdma_cm_event* event = Get();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->id->route.addr.src_addr.sa_family, AF_INET);
  EXPECT_EQ(event->id->route.addr.dst_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_NE(event->id->verbs, nullptr);
  EXPECT_EQ(rdma_destroy_id(event->id), 0);
  rdma_ack_cm_event(event);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

}  // namespace
}  // namespace weft::cm
