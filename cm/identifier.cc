#include "cm/identifier.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/settings.h"
#include "cm/export.h"

namespace weft::cm {
namespace {

rdma_cm_event_type TypeOf(sim::CmEvent::Kind kind) {
  switch (kind) {
    case sim::CmEvent::Kind::kConnectRequest:
      return RDMA_CM_EVENT_CONNECT_REQUEST;
    case sim::CmEvent::Kind::kEstablished:
      return RDMA_CM_EVENT_ESTABLISHED;
    case sim::CmEvent::Kind::kRejected:
      return RDMA_CM_EVENT_REJECTED;
    case sim::CmEvent::Kind::kUnreachable:
      return RDMA_CM_EVENT_UNREACHABLE;
    case sim::CmEvent::Kind::kConnectError:
      return RDMA_CM_EVENT_CONNECT_ERROR;
    case sim::CmEvent::Kind::kDisconnected:
      return RDMA_CM_EVENT_DISCONNECTED;
  }
  return RDMA_CM_EVENT_CONNECT_ERROR;
}

Identifier::State StateAfter(sim::CmEvent::Kind kind, Identifier::State now) {
  switch (kind) {
    case sim::CmEvent::Kind::kConnectRequest:
      return now;
    case sim::CmEvent::Kind::kEstablished:
      return Identifier::State::kEstablished;
    case sim::CmEvent::Kind::kDisconnected:
      return Identifier::State::kDisconnected;
    default:
      return Identifier::State::kFailed;
  }
}

// For a program that leaves a connection request untouched: more than a few wake-ups of threads take on a busy machine.
constexpr std::chrono::milliseconds kPatience{200};

uint8_t Byte(uint16_t value) { return static_cast<uint8_t>(std::min<uint16_t>(value, 255)); }

// rdma_get_cm_event(3): under InfiniBand the status of a rejection is the reason in the CM's REJ message, over iWARP an errno.
int StatusOfEvent(const sim::CmEvent& from, bool iwarp) {
  return from.kind == sim::CmEvent::Kind::kRejected && !iwarp ? static_cast<int>(from.reason) : -from.error;
}

// The lengths of the public structures are a byte; a foreign peer may have sent up to 512.
std::unique_ptr<Event> Translate(sim::CmEvent&& from, bool datagrams, bool iwarp) {
  auto event = std::make_unique<Event>();
  event->event = TypeOf(from.kind);
  event->status = StatusOfEvent(from, iwarp);
  event->request = std::move(from.endpoint);
  event->private_data = std::move(from.private_data);
  if (datagrams) {
    rdma_ud_param& ud = event->param.ud;
    ud.private_data_len = static_cast<uint8_t>(std::min<size_t>(event->private_data.size(), 255));
    ud.private_data = ud.private_data_len != 0 ? event->private_data.data() : nullptr;
    ud.qp_num = from.number;
    ud.qkey = from.qkey;
    if (from.sidr_status != 0) event->status = from.sidr_status;  // rdma_get_cm_event(3): the peer's word, not an errno
    return event;
  }
  rdma_conn_param& conn = event->param.conn;
  conn.private_data_len = static_cast<uint8_t>(std::min<size_t>(event->private_data.size(), 255));
  conn.private_data = conn.private_data_len != 0 ? event->private_data.data() : nullptr;
  conn.responder_resources = Byte(from.ird);
  conn.initiator_depth = Byte(from.ord);
  return event;
}

}  // namespace

sim::CmApi* Engine() {
  sim::CmApi* const engine = weft_private_cm_api(sim::CmApi::kVersion);  // a fork's child has one of its own
  if (engine == nullptr) {
    static std::once_flag told;
    std::call_once(told, [] {
      LogWarning("librdmacm.so.1 and libibverbs.so.1 are of different versions of Weft; install both from one build");
    });
  }
  return engine;
}

namespace {

// The identifiers that programs have. Perftest goes on with those that it destroyed, when a connection fails for want of descriptors.
class LiveIdentifiers {
 public:
  // Never destroyed: a program's threads may outlive main.
  static LiveIdentifiers& Process() {
    static LiveIdentifiers* const live = [] {
      pthread_atfork([] { Process().mutex_.lock(); }, [] { Process().mutex_.unlock(); }, [] { Process().mutex_.unlock(); });
      return new LiveIdentifiers;
    }();
    return *live;
  }
  void Add(const std::shared_ptr<Identifier>& id) {
    std::lock_guard lock(mutex_);
    live_[id.get()] = id;
  }
  void Remove(const rdma_cm_id* id) {
    std::lock_guard lock(mutex_);
    live_.erase(id);
  }
  // By its address alone: it may have been destroyed.
  std::shared_ptr<Identifier> Find(const rdma_cm_id* id) {
    std::lock_guard lock(mutex_);
    const auto at = live_.find(id);
    return at == live_.end() ? nullptr : at->second.lock();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const rdma_cm_id*, std::weak_ptr<Identifier>> live_;
};

}  // namespace

Identifier::Identifier(std::shared_ptr<Channel> on, bool synchronous)
    : rdma_cm_id{}, channel_(std::move(on)), synchronous_(synchronous) {}

Identifier::~Identifier() = default;

std::shared_ptr<Identifier> Identifier::Find(rdma_cm_id* id) { return LiveIdentifiers::Process().Find(id); }

std::shared_ptr<Identifier> Identifier::Create(Channel* on, void* context, rdma_port_space port_space,
                                               ibv_qp_type qp_type) {
  std::shared_ptr<Channel> channel = on != nullptr ? on->shared_from_this() : Channel::Create();
  if (channel == nullptr) return nullptr;
  std::shared_ptr<Identifier> id(new Identifier(channel, on == nullptr));
  id->channel = channel.get();
  id->context = context;
  id->rdma_cm_id::ps = port_space;
  id->rdma_cm_id::qp_type = qp_type;
  id->self_ = id;
  LiveIdentifiers::Process().Add(id);
  return id;
}

int Identifier::Make(rdma_event_channel* channel, void* context, rdma_port_space port_space, ibv_qp_type qp_type, rdma_cm_id** made) {
  const bool roce = ProcessSettings().persona == Persona::kRoce;
  switch (port_space) {
    case RDMA_PS_TCP:
      break;
    case RDMA_PS_UDP:
    case RDMA_PS_IB:
      if (!roce) return EOPNOTSUPP;
      break;
    case RDMA_PS_IPOIB:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
  if (Engine() == nullptr || (channel == nullptr && !Devices::Process().Exist())) return ENODEV;
  const auto created = Create(channel != nullptr ? Channel::From(channel) : nullptr, context, port_space, qp_type);
  if (created == nullptr) return errno;
  *made = created.get();
  return 0;
}

void Identifier::Destroy() {
  LiveIdentifiers::Process().Remove(this);
  TouchRequest();
  RequestGate::Events untold;
  std::shared_ptr<sim::Endpoint> endpoint;
  std::shared_ptr<Channel> channel;
  {
    std::lock_guard lock(mutex_);
    destroyed_ = true;
    endpoint = std::move(endpoint_);
    channel = channel_;
    untold = requests_.Clear();
  }
  LeaveAllGroups(/*forget=*/true);
  if (listener_ != nullptr) listener_->Close();
  listener_.reset();  // it may hold this as its observer
  if (endpoint != nullptr) {
    endpoint->SetObserver(nullptr);
    endpoint->Close();
  }
  DestroyStandIn();
  channel->Extract(this);
  untold.clear();
  ReleaseEvent();
  {
    std::unique_lock lock(mutex_);
    acknowledged_.wait(lock, [&] { return unacknowledged_ == 0; });
  }
  port_.Release();
  if (synchronous_) channel->Close();
  self_.reset();  // may destroy this
}

int Identifier::Migrate(Channel* to) {
  if (synchronous_ && to == nullptr) return EINVAL;
  TouchRequest();
  std::shared_ptr<Channel> target = to != nullptr ? to->shared_from_this() : Channel::Create();
  if (target == nullptr) return errno;
  std::shared_ptr<Channel> old;
  std::vector<std::unique_ptr<Event>> waiting;
  RequestGate::Events untold;
  {
    std::lock_guard lock(mutex_);
    old = std::exchange(channel_, target);
    if (old->closed()) untold = requests_.Clear();
    rdma_cm_id::channel = target.get();
    if (old != target) {
      waiting = old->Extract(this);
      for (auto& event : waiting) target->Push(event);
    }
  }
  ReleaseEvent();
  if (synchronous_) old->Close();
  synchronous_ = to == nullptr;
  std::unique_lock lock(mutex_);
  acknowledged_.wait(lock, [&] { return unacknowledged_ == 0; });
  return 0;
}

Identifier::State Identifier::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void Identifier::set_state(State state) {
  std::lock_guard lock(mutex_);
  state_ = state;
}

std::shared_ptr<sim::Endpoint> Identifier::endpoint() const {
  std::lock_guard lock(mutex_);
  return endpoint_;
}

void Identifier::Post(rdma_cm_event_type type, int status, uint64_t argument) {
  auto event = std::make_unique<Event>();
  event->event = type;
  event->status = status;
  static_assert(sizeof event->param >= sizeof argument);
  memcpy(&event->param, &argument, sizeof argument);
  event->id = this;
  event->owner = shared_from_this();
  std::lock_guard lock(mutex_);
  channel_->Push(event);
}

bool Identifier::PostFault(sim::CmApi::FaultPoint point) {
  if (destroyed()) return false;
  const auto fault = Engine()->FaultAt(point, destination(), device_ != nullptr ? device_->name.c_str() : nullptr);
  if (!fault) return false;
  const auto type = static_cast<rdma_cm_event_type>(fault->event);
  int status = -fault->status;
  if (type == RDMA_CM_EVENT_REJECTED && status == 0) {
    status = StatusOfEvent({.kind = sim::CmEvent::Kind::kRejected, .error = ECONNREFUSED}, device_ != nullptr && device_->is_iwarp());
  }
  if (fault->after.count() == 0) {
    Post(type, status);
    return true;
  }
  transport::Network& network = Engine()->network();
  network.RunAt(network.Now() + fault->after, [weak = weak_from_this(), type, status] {
    const auto self = weak.lock();
    if (self != nullptr && !self->destroyed()) self->Post(type, status);
  });
  return true;
}

bool Identifier::destroyed() const {
  std::lock_guard lock(mutex_);
  return destroyed_;
}

void Identifier::OnCmEvent(sim::CmEvent from) {
  const sim::CmEvent::Kind kind = from.kind;
  Notify(std::move(from));
  if (kind == sim::CmEvent::Kind::kEstablished) PostFault(sim::CmApi::FaultPoint::kEstablished);
  if (kind == sim::CmEvent::Kind::kDisconnected) PostFault(sim::CmApi::FaultPoint::kDisconnected);
}

void Identifier::Notify(sim::CmEvent from) {
  const sim::CmEvent::Kind kind = from.kind;
  const bool iwarp = device_ != nullptr && device_->is_iwarp();
  std::unique_ptr<Event> event = Translate(std::move(from), datagrams(), iwarp);  // outlives the lock if nobody takes it
  event->id = this;
  event->owner = shared_from_this();
  RequestGate::Events untold;
  std::lock_guard lock(mutex_);
  if (destroyed_) return;
  const State before = std::exchange(state_, StateAfter(kind, state_));
  // The peer left before the program answered: rdma_accept will say so.
  if (before == State::kRequested) return;
  // A program with a queue pair of its own waits for this, except over iWARP.
  if (kind == sim::CmEvent::Kind::kEstablished && before == State::kConnecting && external_qp_ != nullptr &&
      !device_->is_iwarp()) {
    event->event = RDMA_CM_EVENT_CONNECT_RESPONSE;
  }
  if (kind == sim::CmEvent::Kind::kConnectRequest) {
    if (channel_->closed()) {
      untold = requests_.Clear();
    } else if (!requests_.Admit(event)) {
      return StartGateTimer();
    }
  }
  channel_->Push(event);
}

void Identifier::Announce(RequestGate::Events& requests) {
  for (auto& request : requests) channel_->Push(request);
}

void Identifier::StartGateTimer() {
  if (!requests_.NeedsTimer()) return;
  transport::Network& network = Engine()->network();
  network.RunAt(network.Now() + kPatience, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    RequestGate::Events released;  // outlives the lock, as every event
    std::lock_guard lock(self->mutex_);
    if (self->destroyed_) return;
    released = self->requests_.OnExpired();
    self->Announce(released);
  });
}

void Identifier::OnRequestTouched() {
  RequestGate::Events released;
  std::lock_guard lock(mutex_);
  if (destroyed_) return;
  released = requests_.OnTouched();
  Announce(released);
  StartGateTimer();
}

void Identifier::TouchRequest() {
  if (const auto listener = std::exchange(asked_, {}).lock()) listener->OnRequestTouched();
}

bool Identifier::BeginDelivery(Event& event) {
  {
    std::lock_guard lock(mutex_);
    if (destroyed_) return false;
    ++unacknowledged_;
    if (NumberOf(event) == RDMA_CM_EVENT_DISCONNECTED) disconnect_reported_ = true;
  }
  if (event.request != nullptr) {
    const std::shared_ptr<Identifier> request = AdoptRequest(event);
    {
      std::lock_guard lock(mutex_);
      requests_.OnDelivered();
      if (request != nullptr) StartGateTimer();
    }
    if (request == nullptr) {
      OnRequestTouched();
      Acknowledge();
      return false;
    }
    event.id = request.get();
    event.listen_id = this;
  }
  if (NumberOf(event) == RDMA_CM_EVENT_ESTABLISHED || NumberOf(event) == RDMA_CM_EVENT_CONNECT_RESPONSE) {
    ShowLocalAddress();
    if (datagrams()) event.param.ud.ah_attr = AddressVector(route.addr.addr.ibaddr.dgid);
  }
  if (NumberOf(event) == RDMA_CM_EVENT_MULTICAST_JOIN) {
    if (const int error = AttachGroup(event.join); error != 0) {
      event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
      event.status = -error;
    }
  }
  // Work requests posted beforehand complete now, flushed.
  if (NumberOf(event) == RDMA_CM_EVENT_REJECTED) FailQueuePair();
  return true;
}

void Identifier::Acknowledge() {
  std::lock_guard lock(mutex_);
  --unacknowledged_;
  acknowledged_.notify_all();
}

std::shared_ptr<Identifier> Identifier::AdoptRequest(Event& event) {
  std::shared_ptr<Channel> on;
  if (!synchronous_) {
    std::lock_guard lock(mutex_);
    on = channel_;
  }
  std::shared_ptr<Identifier> request = Create(on.get(), context, ps, qp_type);
  if (request == nullptr) {
    LogWarning(Format("a connection request is rejected: %s", strerror(errno)));
    return nullptr;
  }
  const transport::SocketAddress local = event.request->local_address();
  if (const int error = request->BindDevice(local); error != 0) {
    LogWarning(
        Format("a connection request to %s is rejected: no RDMA device has that address", local.ToString().c_str()));
    request->Destroy();
    return nullptr;
  }
  request->SetSource(local);
  request->SetDestination(event.request->remote_address());
  if (!datagrams()) {
    request->requested_responder_resources_ = event.param.conn.responder_resources;
    request->requested_initiator_depth_ = event.param.conn.initiator_depth;
  }
  request->FillPath();
  request->state_ = State::kRequested;
  request->asked_ = weak_from_this();
  request->endpoint_ = std::move(event.request);
  request->endpoint_->SetObserver(request);
  return request;
}

// The kernel chooses the port of an initiator when it connects.
void Identifier::ShowLocalAddress() {
  const auto connection = endpoint();
  if (connection == nullptr) return;
  if (const transport::SocketAddress local = connection->local_address(); local.port() != 0) SetSource(local);
}

void Identifier::FailQueuePair() {
  if (qp == nullptr) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp, &attributes, IBV_QP_STATE);
}

}  // namespace weft::cm

using weft::cm::Channel;
using weft::cm::Identifier;
using weft::cm::Return;

WEFT_CM_EXPORT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space ps) {
  if (id == nullptr) return Return(EINVAL);
  return Return(Identifier::Make(channel, context, ps, ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC, id));
}

WEFT_CM_EXPORT int rdma_destroy_id(rdma_cm_id* id) {
  if (id == nullptr) return Return(EINVAL);
  const auto keep = Identifier::Find(id);
  if (keep == nullptr) return Return(EINVAL);
  keep->Destroy();
  return 0;
}

WEFT_CM_EXPORT int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  if (id == nullptr) return Return(EINVAL);
  return Return(Identifier::From(id)->Migrate(channel != nullptr ? Channel::From(channel) : nullptr));
}

WEFT_CM_EXPORT __be16 rdma_get_src_port(rdma_cm_id* id) {
  if (id->route.addr.src_addr.sa_family == AF_INET) return id->route.addr.src_sin.sin_port;
  return id->route.addr.src_addr.sa_family == AF_INET6 ? id->route.addr.src_sin6.sin6_port : 0;
}

WEFT_CM_EXPORT __be16 rdma_get_dst_port(rdma_cm_id* id) {
  if (id->route.addr.dst_addr.sa_family == AF_INET) return id->route.addr.dst_sin.sin_port;
  return id->route.addr.dst_addr.sa_family == AF_INET6 ? id->route.addr.dst_sin6.sin6_port : 0;
}
