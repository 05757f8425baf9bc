#include "bench/verbs_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::bench {
namespace {

constexpr int kTimeoutMs = 5000;
constexpr int kBacklog = 2048;
constexpr uint8_t kReads = 16;           // IRD and ORD
constexpr uint32_t kInlineWanted = 220;  // as perftest's latency programs
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

SocketAddress ToSocketAddress(const std::string& text, uint16_t port) {
  SocketAddress address{};
  if (inet_pton(AF_INET, text.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
  } else if (inet_pton(AF_INET6, text.c_str(), &address.v6.sin6_addr) == 1) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
  } else {
    throw Failure("not a numeric address: " + text);
  }
  return address;
}

RemoteBuffer ReadRemoteBuffer(const rdma_conn_param& parameters) {
  RemoteBuffer remote;
  if (parameters.private_data_len < sizeof remote) throw Failure("the peer's private data is too short");
  std::memcpy(&remote, parameters.private_data, sizeof remote);
  return remote;
}

}  // namespace

VerbsConnections::~VerbsConnections() {
  for (Connection& connection : connections_) {
    if (connection.id->qp != nullptr) rdma_disconnect(connection.id.get());
  }
}

void VerbsConnections::OpenEventChannel() {
  events_.reset(rdma_create_event_channel());
  if (!events_) Fail("rdma_create_event_channel", errno);
}

uint16_t VerbsConnections::Listen() {
  OpenEventChannel();
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(events_.get(), &id, nullptr, RDMA_PS_TCP) != 0) Fail("rdma_create_id", errno);
  listener_.reset(id);
  SocketAddress address = ToSocketAddress(shape_.address, 0);
  if (rdma_bind_addr(id, &address.any) != 0) Fail("rdma_bind_addr " + shape_.address, errno);
  if (rdma_listen(id, kBacklog) != 0) Fail("rdma_listen", errno);
  return ntohs(rdma_get_src_port(id));
}

void VerbsConnections::Accept() { HandleEvents(); }

void VerbsConnections::Connect(uint16_t port, int64_t at_once) {
  OpenEventChannel();
  port_ = port;
  const int64_t first = at_once == 0 ? shape_.connections : std::min(at_once, shape_.connections);
  for (int64_t i = 0; i < first; ++i) StartConnecting();
  HandleEvents();
}

void VerbsConnections::StartConnecting() {
  SocketAddress address = ToSocketAddress(shape_.address, port_);
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(events_.get(), &id, nullptr, RDMA_PS_TCP) != 0) Fail("rdma_create_id", errno);
  id->context = reinterpret_cast<void*>(connections_.size());
  connections_.push_back({OwnedId(id), {}});
  if (rdma_resolve_addr(id, nullptr, &address.any, kTimeoutMs) != 0) Fail("rdma_resolve_addr", errno);
}

Connection& VerbsConnections::first() {
  if (connections_.empty()) throw Failure("no connection is open");
  return connections_.front();
}

void VerbsConnections::OpenDevice(ibv_context* device) {
  if (pd_) return;
  pd_.reset(ibv_alloc_pd(device));
  if (!pd_) Fail("ibv_alloc_pd", errno);
  buffer_.assign(2 * static_cast<size_t>(shape_.buffer), 0);
  mr_.reset(ibv_reg_mr(pd_.get(), buffer_.data(), buffer_.size(), kAccess));
  if (!mr_) Fail("ibv_reg_mr", errno);
  send_cq_ = MakeCq(device, &send_channel_, shape_.send_depth);
  receive_cq_ = MakeCq(device, &receive_channel_, shape_.receive_depth);
}

OwnedCq VerbsConnections::MakeCq(ibv_context* device, OwnedChannel* channel, int64_t depth) {
  if (shape_.events) {
    channel->reset(ibv_create_comp_channel(device));
    if (!*channel) Fail("ibv_create_comp_channel", errno);
  }
  const int entries = static_cast<int>(depth * shape_.connections);
  OwnedCq cq(ibv_create_cq(device, entries, nullptr, channel->get(), 0));
  if (!cq) Fail("ibv_create_cq with " + std::to_string(entries) + " entries", errno);
  return cq;
}

void VerbsConnections::MakeQp(rdma_cm_id* id) {
  OpenDevice(id->verbs);
  ibv_qp_init_attr attributes{};
  attributes.send_cq = send_cq_.get();
  attributes.recv_cq = receive_cq_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = static_cast<uint32_t>(shape_.send_depth),
                    .max_recv_wr = static_cast<uint32_t>(shape_.receive_depth),
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = kInlineWanted};
  if (rdma_create_qp(id, pd_.get(), &attributes) != 0) Fail("rdma_create_qp", errno);
  max_inline_ = attributes.cap.max_inline_data;
  for (int64_t i = 0; i < shape_.receive_depth; ++i) PostReceive(id->qp);
}

void VerbsConnections::PostReceive(ibv_qp* qp) {
  ibv_sge sge = {reinterpret_cast<uint64_t>(receive_area()), static_cast<uint32_t>(shape_.buffer), mr_->lkey};
  ibv_recv_wr request = {.wr_id = 0, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(qp, &request, &bad)) Fail("ibv_post_recv", error);
}

RemoteBuffer VerbsConnections::Exposed() { return {reinterpret_cast<uint64_t>(receive_area()), mr_->rkey, 0}; }

rdma_conn_param VerbsConnections::Parameters(const RemoteBuffer* exposed) const {
  rdma_conn_param parameters{};
  parameters.private_data = exposed;
  parameters.private_data_len = sizeof *exposed;
  parameters.responder_resources = kReads;
  parameters.initiator_depth = kReads;
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  return parameters;
}

void VerbsConnections::OnConnectRequest(const rdma_cm_event& event) {
  connections_.push_back({OwnedId(event.id), ReadRemoteBuffer(event.param.conn)});
  event.id->context = reinterpret_cast<void*>(connections_.size() - 1);
  MakeQp(event.id);
  const RemoteBuffer exposed = Exposed();
  rdma_conn_param parameters = Parameters(&exposed);
  if (rdma_accept(event.id, &parameters) != 0) Fail("rdma_accept", errno);
}

void VerbsConnections::OnEstablished(const rdma_cm_event& event) {
  // The responder has read its peer's private data from the request.
  if (!listener_) {
    connections_[reinterpret_cast<size_t>(event.id->context)].remote = ReadRemoteBuffer(event.param.conn);
    if (static_cast<int64_t>(connections_.size()) < shape_.connections) StartConnecting();
  }
  ++established_;
}

void VerbsConnections::HandleEvents() {
  while (established_ < shape_.connections) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(events_.get(), &event) != 0) Fail("rdma_get_cm_event", errno);
    const Owned<rdma_cm_event, rdma_ack_cm_event> acknowledge(event);
    switch (event->event) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(event->id, kTimeoutMs) != 0) Fail("rdma_resolve_route", errno);
        break;
      case RDMA_CM_EVENT_ROUTE_RESOLVED: {
        MakeQp(event->id);
        const RemoteBuffer exposed = Exposed();
        rdma_conn_param parameters = Parameters(&exposed);
        if (rdma_connect(event->id, &parameters) != 0) Fail("rdma_connect", errno);
        break;
      }
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        OnConnectRequest(*event);
        break;
      case RDMA_CM_EVENT_ESTABLISHED:
        OnEstablished(*event);
        break;
      default:
        throw Failure(std::string(rdma_event_str(event->event)) + ", status " + std::to_string(event->status));
    }
  }
}

}  // namespace weft::bench
