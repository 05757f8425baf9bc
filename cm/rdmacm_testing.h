#ifndef CM_RDMACM_TESTING_H_
#define CM_RDMACM_TESTING_H_

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
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// Steps that the tests of librdmacm's public API share.
namespace weft::cm::public_api {

using std::chrono::milliseconds;

inline constexpr int kPatienceMs = 20000;

// Whether this run uses the iwarp persona; tools/personas.bzl sets it in the environment.
inline bool IwarpPersona() {
  const char* persona = std::getenv("WEFT_PERSONA");
  return persona != nullptr && std::string_view(persona) == "iwarp";
}

// The status of a rejection (rdma_get_cm_event(3)). With the roce persona these are InfiniBand's reasons "consumer
// defined", "vendor option is not supported" and "invalid service id".
inline int ByTheProgram() { return IwarpPersona() ? -ECONNREFUSED : 28; }
inline int ForTheVendorsOption() { return IwarpPersona() ? -ECONNREFUSED : 35; }
inline int NobodyListens() { return IwarpPersona() ? -ECONNREFUSED : 8; }

inline sockaddr_storage Address(const std::string& host, uint16_t port_network_order = 0) {
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

inline sockaddr* Raw(sockaddr_storage& storage) { return reinterpret_cast<sockaddr*>(&storage); }

inline ibv_qp_init_attr SmallQueuePair() {
  ibv_qp_init_attr attributes{};
  attributes.cap = {4, 4, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  return attributes;
}

inline rdma_conn_param WithData(std::string_view data) {
  rdma_conn_param parameters{};
  parameters.private_data = data.data();
  parameters.private_data_len = static_cast<uint8_t>(data.size());
  parameters.responder_resources = 1;
  parameters.initiator_depth = 1;
  parameters.retry_count = 7;
  return parameters;
}

inline std::string DataOf(const rdma_cm_event* event) {
  const auto& conn = event->param.conn;
  return std::string(static_cast<const char*>(conn.private_data), conn.private_data_len);
}

// The type of an event. It may be newer than the headers used for this build, whose enumeration cannot hold it.
inline int NumberOf(const rdma_cm_event& event) {
  int number;
  static_assert(sizeof number == sizeof event.event);
  memcpy(&number, &event.event, sizeof number);
  return number;
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
    EXPECT_STREQ(rdma_event_str(static_cast<rdma_cm_event_type>(NumberOf(*event))), rdma_event_str(type));
    EXPECT_EQ(event->status, status);
    EXPECT_EQ(event->id, id);
    rdma_ack_cm_event(event);
  }

 private:
  rdma_event_channel* const channel_;
};

inline rdma_cm_id* NewId(Channel& channel, void* context = nullptr) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, context, RDMA_PS_TCP), 0) << strerror(errno);
  return id;
}

inline rdma_cm_id* Listener(Channel& channel, const std::string& host, int backlog = 0, void* context = nullptr) {
  rdma_cm_id* id = NewId(channel, context);
  sockaddr_storage address = Address(host);
  EXPECT_EQ(rdma_bind_addr(id, Raw(address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(id, backlog), 0) << strerror(errno);
  EXPECT_NE(rdma_get_src_port(id), 0);
  return id;
}

inline void Resolve(Channel& channel, rdma_cm_id* id, const std::string& host, uint16_t port) {
  sockaddr_storage to = Address(host, port);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, Raw(to), 2000), 0) << strerror(errno);
  channel.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, id);
  ASSERT_EQ(rdma_resolve_route(id, 2000), 0) << strerror(errno);
  channel.Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, id);
}

inline void MakeQueuePair(rdma_cm_id* id) {
  ibv_qp_init_attr attributes = SmallQueuePair();
  ASSERT_EQ(rdma_create_qp(id, nullptr, &attributes), 0) << strerror(errno);
  ASSERT_NE(id->qp, nullptr);
}

inline rdma_cm_id* StartClient(Channel& channel, const std::string& host, uint16_t port, const std::string& data = "") {
  rdma_cm_id* id = NewId(channel);
  Resolve(channel, id, host, port);
  MakeQueuePair(id);
  rdma_conn_param parameters = WithData(data);
  EXPECT_EQ(rdma_connect(id, &parameters), 0) << strerror(errno);
  return id;
}

// The identifier of the next connection request.
inline rdma_cm_id* NextRequest(Channel& channel, rdma_cm_id* listener, std::string* data = nullptr) {
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

inline void DestroyAll(std::initializer_list<rdma_cm_id*> ids) {
  for (rdma_cm_id* id : ids) {
    rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
}

inline void SendAndReceive(rdma_cm_id* from, rdma_cm_id* to) {
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

}  // namespace weft::cm::public_api

#endif  // CM_RDMACM_TESTING_H_
