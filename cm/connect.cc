// Connections: rdma_listen, rdma_connect, rdma_accept, rdma_reject, rdma_disconnect, rdma_establish, rdma_notify.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "cm/export.h"
#include "cm/identifier.h"

// Of Weft's libibverbs, at WEFT_PRIVATE_1: the queue pair of this process with that number, or nullptr.
extern "C" __attribute__((weak)) ibv_qp* weft_private_find_qp(uint32_t number);

namespace weft::cm {

using transport::SocketAddress;

namespace {

// As the kernel's rdma_ucm: what a program asks for beyond this, or leaves open with 0, is this.
constexpr int kMostBacklog = 1024;
// rdma_conn_param's private_data_len is a byte and rdma_core adds ai_connect's data within the same room.
constexpr size_t kMostPrivateData = 255;

// A program's own queue pair may still be as it was created.
int BringToInit(Identifier& id, ibv_qp* queue_pair) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr unused{};
  if (const int error = ibv_query_qp(queue_pair, &attributes, IBV_QP_STATE, &unused); error != 0) return error;
  if (attributes.qp_state != IBV_QPS_RESET) return 0;
  int mask = 0;
  attributes.qp_state = IBV_QPS_INIT;
  if (const int error = id.InitQueuePairAttributes(&attributes, &mask); error != 0) return error;
  return ibv_modify_qp(queue_pair, &attributes, mask);
}

// `wanted` is kAsMany (RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH): `otherwise`, as far as the device can. nullopt: too
// many.
constexpr uint8_t kAsMany = 0xff;
std::optional<uint8_t> Resources(uint8_t wanted, uint8_t otherwise, uint8_t limit) {
  if (wanted == kAsMany) return std::min(otherwise, limit);
  if (wanted > limit) return std::nullopt;
  return wanted;
}

}  // namespace

int Identifier::Listen(int backlog) {
  if (state() == State::kIdle) {
    const int error = Bind(SocketAddress::Parse("0.0.0.0", 0).value());
    if (error != 0) return error;
  }
  if (state() != State::kBound) return EINVAL;
  if (backlog <= 0 || backlog > kMostBacklog) backlog = kMostBacklog;
  set_state(State::kListening);  // a request may come before Listen returns
  if (datagrams()) port_.CloseSocket();
  auto listener = datagrams() ? Engine()->ListenDatagrams(port_.address(), backlog, only_v6_, reuse_address_, shared_from_this())
                              : Engine()->Listen(port_.address(), backlog, only_v6_, /*reuse_address=*/true, shared_from_this());
  if (!listener.ok()) {
    set_state(State::kBound);
    return listener.error();
  }
  listener_ = std::move(*listener);
  port_.CloseSocket();
  return 0;
}

Result<sim::ConnectParameters, int> Identifier::Parameters(const rdma_conn_param* given) const {
  sim::ConnectParameters parameters;
  const bool passive = state() == State::kRequested;
  const auto ird = Resources(given != nullptr ? given->responder_resources : kAsMany,
                             passive ? requested_responder_resources_ : kAsMany, device_->max_responder_resources);
  const auto ord = Resources(given != nullptr ? given->initiator_depth : kAsMany,
                             passive ? requested_initiator_depth_ : kAsMany, device_->max_initiator_depth);
  if (!ird || !ord) return EINVAL;
  parameters.ird = *ird;
  parameters.ord = *ord;
  if (given != nullptr) {
    constexpr uint8_t kMost = 7;  // three bits
    parameters.rnr_retry = std::min(given->rnr_retry_count, kMost);
    parameters.retry_count = std::min(given->retry_count, kMost);
  }
  if (ack_timeout_) parameters.ack_timeout = *ack_timeout_;
  parameters.private_data = connect_data_;
  if (given != nullptr && given->private_data != nullptr) {
    const auto* data = static_cast<const uint8_t*>(given->private_data);
    parameters.private_data.insert(parameters.private_data.end(), data, data + given->private_data_len);
  }
  if (parameters.private_data.size() > kMostPrivateData) return EINVAL;
  return parameters;
}

// What a request takes along, or tells the requester of our queue pair: the identifier's own, or one named by its number.
Result<sim::ConnectParameters, int> Identifier::DatagramParameters(const rdma_conn_param* given) const {
  sim::ConnectParameters parameters;
  parameters.private_data = connect_data_;
  if (given != nullptr && given->private_data != nullptr) {
    const auto* data = static_cast<const uint8_t*>(given->private_data);
    parameters.private_data.insert(parameters.private_data.end(), data, data + given->private_data_len);
  }
  if (parameters.private_data.size() > kMostPrivateData) return EINVAL;
  if (qp != nullptr) {
    parameters.number = qp->qp_num;
  } else if (given != nullptr) {
    parameters.number = given->qp_num & 0xffffff;
  }
  parameters.qkey = RDMA_UDP_QKEY;
  return parameters;
}

// UCX names an unreliable datagram queue pair that it made for its number only: rdma_cm is to carry private data, and its queue pairs
// connect themselves. Ours stands in for that one.
ibv_qp* Identifier::QueuePairFor(const rdma_conn_param* parameters) {
  if (qp != nullptr) return qp;
  if (parameters == nullptr || weft_private_find_qp == nullptr) return nullptr;
  ibv_qp* const named = weft_private_find_qp(parameters->qp_num);
  return named != nullptr && named->qp_type == IBV_QPT_UD ? StandIn() : named;
}

int Identifier::Connect(const rdma_conn_param* given) {
  if (state() != State::kRouteResolved) return EINVAL;
  ibv_qp* const queue_pair = datagrams() ? nullptr : QueuePairFor(given);
  if (queue_pair == nullptr && !datagrams()) return EINVAL;
  auto parameters = datagrams() ? DatagramParameters(given) : Parameters(given);
  if (!parameters.ok()) return parameters.error();
  if (qp == nullptr && !datagrams()) {
    if (const int error = BringToInit(*this, queue_pair); error != 0) return error;
    external_qp_ = queue_pair;
  }

  if (PostFault(sim::CmApi::FaultPoint::kConnect)) {
    set_state(State::kFailed);
    return 0;
  }
  SocketAddress local = source();
  if (port_was_chosen_) {
    local.set_port(0);  // the kernel's choice for this destination has the wider range
    port_.Release();
  } else {
    port_.CloseSocket();
  }
  const auto endpoint = datagrams() ? Engine()->CreateDatagramEndpoint() : Engine()->CreateEndpoint();
  if (endpoint == nullptr) return EOPNOTSUPP;
  {
    std::lock_guard lock(mutex_);
    endpoint_ = endpoint;
    state_ = State::kConnecting;
  }
  endpoint->SetObserver(shared_from_this());
  if (const int error = endpoint->Connect(local, destination(), queue_pair, *parameters); error != 0) {
    endpoint->SetObserver(nullptr);
    endpoint->Close();
    std::lock_guard lock(mutex_);
    endpoint_ = nullptr;
    state_ = State::kRouteResolved;
    return error;
  }
  connect_data_.clear();
  return 0;
}

int Identifier::Accept(const rdma_conn_param* given) {
  TouchRequest();
  const State before = state();
  if (before == State::kFailed) return ECONNRESET;  // the peer left meanwhile
  if (before != State::kRequested) return EINVAL;
  if (datagrams()) return AcceptDatagrams(given);
  ibv_qp* const queue_pair = QueuePairFor(given);
  if (queue_pair == nullptr) return EINVAL;
  auto parameters = Parameters(given);
  if (!parameters.ok()) return parameters.error();
  if (qp == nullptr) {
    if (const int error = BringToInit(*this, queue_pair); error != 0) return error;
    external_qp_ = queue_pair;
  }

  const auto endpoint = this->endpoint();
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kFailed) return ECONNRESET;
    state_ = State::kAccepting;
  }
  if (const int error = endpoint->Accept(queue_pair, *parameters); error != 0) {
    set_state(State::kFailed);
    FailQueuePair();
    return error;
  }
  return 0;
}

// The answer is all: no event follows.
int Identifier::AcceptDatagrams(const rdma_conn_param* given) {
  auto parameters = DatagramParameters(given);
  if (!parameters.ok()) return parameters.error();
  if (parameters->number == 0) return EINVAL;
  if (const int error = endpoint()->Accept(nullptr, *parameters); error != 0) return error;
  set_state(State::kEstablished);
  return 0;
}

int Identifier::Reject(const void* data, size_t length, sim::CmEvent::Reason reason) {
  TouchRequest();
  const State before = state();
  if (before == State::kFailed) return 0;  // nobody left to tell
  if (before != State::kRequested) return EINVAL;
  std::vector<uint8_t> private_data;
  if (data != nullptr) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    private_data.assign(bytes, bytes + length);
  }
  set_state(State::kFailed);
  return endpoint()->Reject(private_data, reason);
}

int Identifier::Disconnect() {
  if (datagrams()) {
    FailQueuePair();
    return EINVAL;  // nothing is connected
  }
  switch (state()) {
    case State::kEstablished:
    case State::kAccepting: {
      const int error = endpoint()->Disconnect();
      return error == ENOTCONN ? 0 : error;  // the peer was first
    }
    case State::kDisconnected:
      return 0;
    default:
      FailQueuePair();  // a program that gives up waits for its work requests to come back flushed
      return EINVAL;
  }
}

int Identifier::Establish() {
  if (qp != nullptr || external_qp_ == nullptr) return EINVAL;
  return connected() ? 0 : EINVAL;
}

bool Identifier::connected() const {
  const State now = state();
  return now == State::kEstablished || now == State::kDisconnected;
}

}  // namespace weft::cm

using weft::cm::Identifier;
using weft::cm::Return;

namespace {

int RejectFor(weft::sim::CmEvent::Reason reason, rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  if (id == nullptr) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  return Return(keep->Reject(private_data, private_data_len, reason));
}

}  // namespace

WEFT_CM_EXPORT int rdma_listen(rdma_cm_id* id, int backlog) {
  if (id == nullptr) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  return Return(keep->Listen(backlog));
}

WEFT_CM_EXPORT int rdma_connect(rdma_cm_id* id, rdma_conn_param* conn_param) {
  if (id == nullptr) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  Identifier& identifier = *keep;
  if (const int error = identifier.Connect(conn_param); error != 0) return Return(error);
  return Return(identifier.Complete());
}

WEFT_CM_EXPORT int rdma_accept(rdma_cm_id* id, rdma_conn_param* conn_param) {
  if (id == nullptr) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  Identifier& identifier = *keep;
  if (const int error = identifier.Accept(conn_param); error != 0) return Return(error);
  if (identifier.datagrams()) return 0;
  if (const int error = identifier.Complete(); error != 0) return Return(error);
  const bool left = identifier.synchronous() && weft::cm::NumberOf(*identifier.event) == RDMA_CM_EVENT_DISCONNECTED;  // before it was established
  return left ? Return(ECONNRESET) : 0;
}

WEFT_CM_EXPORT int rdma_reject(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  return RejectFor(weft::sim::CmEvent::Reason::kConsumerDefined, id, private_data, private_data_len);
}

// The kernel's rdma_cm lets programs choose between these two reasons (ucma_reject in drivers/infiniband/core/ucma.c).
WEFT_CM_EXPORT int rdma_reject_ece(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  return RejectFor(weft::sim::CmEvent::Reason::kVendorOption, id, private_data, private_data_len);
}

WEFT_CM_EXPORT int rdma_disconnect(rdma_cm_id* id) {
  if (id == nullptr) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  Identifier& identifier = *keep;
  if (const int error = identifier.Disconnect(); error != 0) return Return(error);
  return Return(identifier.CompleteDisconnect());
}

WEFT_CM_EXPORT int rdma_establish(rdma_cm_id* id) {
  if (id == nullptr) return Return(EINVAL);
  return Return(Identifier::From(id)->Establish());
}

// Only InfiniBand needs telling: over iWARP nothing arrives before the connection is established.
WEFT_CM_EXPORT int rdma_notify(rdma_cm_id* id, ibv_event_type /*event*/) {
  if (id == nullptr || id->verbs == nullptr) return Return(EINVAL);
  return 0;
}
