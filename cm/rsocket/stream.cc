// The life of a stream rsocket: bind, listen, accept, connect, shutdown, close.
#include "cm/rsocket/stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/file_limit.h"
#include "cm/rsocket/lingering.h"

namespace weft::rsocket {
namespace {

constexpr int kResolveMilliseconds = 10000;
// How long what was sent before rclose has to reach the peer, and who calls rclose waits while nothing moves: less when there
// are others that nobody answers.
constexpr std::chrono::seconds kCloseLimit{10};
constexpr std::chrono::milliseconds kPatience{200}, kPatienceAmongSilent{10};
constexpr std::chrono::seconds kOpenLimit{2};

rdma_conn_param Parameters(const uint8_t* private_data) {
  rdma_conn_param parameters{};
  parameters.private_data = private_data;
  parameters.private_data_len = ConnectData::kSize;
  // An iWARP adapter may open its half of the connection with an RDMA Read.
  parameters.responder_resources = 1;
  parameters.initiator_depth = 1;
  parameters.flow_control = 1;
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  return parameters;
}

socklen_t LengthOf(int family) { return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

// 0 or errno.
int CheckAddress(const sockaddr* address, socklen_t length, int domain) {
  if (address == nullptr) return EFAULT;
  if (length < sizeof(sa_family_t)) return EINVAL;
  if (address->sa_family != domain) return EAFNOSUPPORT;
  return length < LengthOf(domain) ? EINVAL : 0;
}

int ErrorOf(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_REJECTED) return ECONNREFUSED;
  if (event.status != 0) return abs(event.status);
  return event.event == RDMA_CM_EVENT_UNREACHABLE ? ETIMEDOUT : ECONNABORTED;
}

}  // namespace

Stream::Stream(int domain) : WaitingSocket(domain) {
  const Defaults& defaults = Defaults::Process();
  sizes_ = {defaults.send_bytes,    defaults.receive_bytes, defaults.send_queue,
            defaults.receive_queue, defaults.inline_bytes,  defaults.map_entries};
}

// May run at the end of a call that has set errno.
Stream::~Stream() {
  const int error = errno;
  for (const Mapping& mapping : mappings_) ibv_dereg_mr(mapping.region);
  DropIdentifier();
  errno = error;
}

int Stream::MakeIdentifier() {
  if (id_ != nullptr) return 0;
  if (channel_ == nullptr) {
    channel_ = rdma_create_event_channel();
    if (channel_ == nullptr) return errno;
    if (fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) return errno;
  }
  if (rdma_create_id(channel_, &id_, this, RDMA_PS_TCP) != 0) return errno;
  int on = 1;
  if (reuse_address_) rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on);
  if (only_v6_) rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on);
  return 0;
}

void Stream::DropIdentifier() {
  for (const Request& request : requests_) {
    rdma_reject(request.id, nullptr, 0);
    rdma_destroy_id(request.id);
  }
  requests_.clear();
  if (link_ != nullptr && unacknowledged_ != 0) ibv_ack_cq_events(link_->cq(), std::exchange(unacknowledged_, 0));
  link_.reset();
  if (id_ != nullptr) rdma_destroy_id(std::exchange(id_, nullptr));
  if (channel_ != nullptr) rdma_destroy_event_channel(std::exchange(channel_, nullptr));
}

int Stream::Bind(const sockaddr* address, socklen_t length) {
  if (const int error = CheckAddress(address, length, domain_); error != 0) return error;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  if (state_ != State::kIdle) return EINVAL;
  if (const int error = MakeIdentifier(); error != 0) return error;
  sockaddr_storage copy{};
  std::memcpy(&copy, address, LengthOf(domain_));
  if (rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&copy)) != 0) return errno;
  state_ = State::kBound;
  return 0;
}

int Stream::Listen(int backlog) {
  Lock lock(mutex_);
  if (closing_) return EBADF;
  if (state_ == State::kListening) return 0;
  if (state_ == State::kIdle) {
    // Any port, as listen(2) chooses one.
    if (const int error = MakeIdentifier(); error != 0) return error;
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(domain_);
    if (rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&any)) != 0) return errno;
    state_ = State::kBound;
  }
  if (state_ != State::kBound) return EINVAL;
  if (rdma_listen(id_, backlog) != 0) return errno;
  state_ = State::kListening;
  return 0;
}

// --- events of the connection manager ---

bool Stream::TakeCmEvents() {
  bool any = false;
  rdma_cm_event* event = nullptr;
  while (channel_ != nullptr && rdma_get_cm_event(channel_, &event) == 0) {
    any = true;
    rdma_cm_event copy = *event;
    std::vector<uint8_t> private_data;
    if (const void* data = event->param.conn.private_data; data != nullptr) {
      const auto* bytes = static_cast<const uint8_t*>(data);
      private_data.assign(bytes, bytes + event->param.conn.private_data_len);
    }
    rdma_ack_cm_event(event);
    OnCmEvent(copy, private_data);
  }
  return any;
}

void Stream::OnCmEvent(const rdma_cm_event& event, const std::vector<uint8_t>& private_data) {
  if (event.id != id_) {
    if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) return OnRequest(event.id, private_data);
    return;
  }
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (state_ == State::kResolving && rdma_resolve_route(id_, kResolveMilliseconds) != 0) FailConnect(errno);
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (state_ == State::kResolving) OnResolved();
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (state_ == State::kConnecting) {
        const auto peer = ConnectData::Parse(private_data);
        if (!peer || !Adopt(*peer)) return FailConnect(EOPNOTSUPP);  // no rsocket
      }
      if (opening()) state_ = State::kConnected;
      return;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      if (state_ == State::kAccepting) return OnLost(ECONNRESET);
      if (opening()) FailConnect(ErrorOf(event));
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      if (state_ == State::kAccepting) OnLost(ECONNRESET);
      return;
    default:
      return;
  }
}

void Stream::OnRequest(rdma_cm_id* request, const std::vector<uint8_t>& private_data) {
  const auto data = ConnectData::Parse(private_data);
  if (!data || closing_ || state_ != State::kListening) {
    rdma_reject(request, nullptr, 0);
    rdma_destroy_id(request);
    return;
  }
  requests_.push_back({request, *data});
}

// --- connecting ---

int Stream::Connect(const sockaddr* address, socklen_t length) {
  if (address != nullptr && length >= sizeof(sa_family_t) && address->sa_family == AF_UNSPEC) return EOPNOTSUPP;
  if (const int error = CheckAddress(address, length, domain_); error != 0) return error;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  Drive();
  switch (state_) {
    case State::kIdle:
    case State::kBound:
      break;
    case State::kFailed: {
      if (error_ != 0) return std::exchange(error_, 0);  // of the attempt before
      DropIdentifier();
      state_ = State::kIdle;
      break;
    }
    case State::kListening:
    case State::kConnected:
      return EISCONN;
    default:
      if (nonblocking_) return EALREADY;
      break;
  }
  if (!opening()) {
    if (const int error = MakeIdentifier(); error != 0) return error;
    sockaddr_storage copy{};
    std::memcpy(&copy, address, LengthOf(domain_));
    if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&copy), kResolveMilliseconds) != 0) return errno;
    state_ = State::kResolving;
    Drive();
  }
  if (opening()) {
    if (nonblocking_) return EINPROGRESS;
    const int error = Await(lock, DeadlineOf(0, send_timeout_), &Stream::Opened);
    if (error != 0) return error == EAGAIN ? EINPROGRESS : error;
  }
  if (closing_) return EBADF;
  if (state_ != State::kFailed) return 0;
  return std::exchange(error_, 0);
}

void Stream::OnResolved() {
  if (const int error = MakeLink(); error != 0) return FailConnect(error);
  uint8_t private_data[ConnectData::kSize];
  link_->Describe().Serialize(private_data);
  rdma_conn_param parameters = Parameters(private_data);
  if (rdma_connect(id_, &parameters) != 0) return FailConnect(errno);
  state_ = State::kConnecting;
}

void Stream::FailConnect(int error) {
  state_ = State::kFailed;
  error_ = error;
}

int Stream::MakeLink() {
  link_ = Link::Create(id_, &sizes_);
  if (link_ == nullptr) return errno;
  send_ring_.emplace(sizes_.send_bytes);
  receive_ring_.emplace(sizes_.receive_bytes, sizes_.receive_queue);
  slots_free_ = sizes_.send_queue;
  credits_ = link_->Describe().credits;
  credits_due_at_ = credits_ / 2;
  return 0;
}

bool Stream::Adopt(const ConnectData& peer) {
  if (peer.target_list.length == 0 || peer.credits == 0 || peer.credits > 0x7fff) return false;
  swap_ = peer.big_endian != (std::endian::native == std::endian::big);
  peer_list_ = peer.target_list;
  peer_list_next_ = 1 % peer_list_.length;
  peer_map_ = peer_list_.address + uint64_t{peer_list_.length} * sizeof(Target);
  peer_map_entries_ = peer.map_entries;
  targets_[0] = peer.buffer;
  credit_limit_ = peer.credits;
  peer_reserve_ = std::min<uint16_t>(kControlSlots, peer.credits / 4);
  return true;
}

// --- accepting ---

int Stream::Accept(std::shared_ptr<Socket>* accepted) {
  for (;;) {
    Request request{};
    auto stream = std::make_shared<Stream>(domain_);
    {
      Lock lock(mutex_);
      if (closing_) return EBADF;
      if (state_ != State::kListening) return EINVAL;
      Drive();
      if (requests_.empty()) {
        if (nonblocking_) return EAGAIN;
        if (const int error = Await(lock, DeadlineOf(0, receive_timeout_), &Stream::HasRequest); error != 0) return error;
        if (closing_) return EBADF;
      }
      request = requests_.front();
      requests_.pop_front();
      stream->sizes_ = sizes_;
      stream->no_delay_ = no_delay_;
      stream->keep_alive_ = keep_alive_;
      stream->linger_ = linger_;
    }
    const int error = stream->AcceptRequest(request.id, request.data);
    if (error == ECONNRESET) continue;  // it left meanwhile
    if (IsShortage(error)) {
      // It goes on waiting, as with accept(2).
      Lock lock(mutex_);
      if (state_ == State::kListening && !closing_) {
        requests_.push_front(request);
      } else {
        rdma_reject(request.id, nullptr, 0);
        rdma_destroy_id(request.id);
      }
    }
    if (error != 0) return error;
    *accepted = std::move(stream);
    return 0;
  }
}

int Stream::AcceptRequest(rdma_cm_id* request, const ConnectData& peer) {
  Lock lock(mutex_);
  // Of a shortage the caller's request is not touched.
  const auto refuse = [&](int error) {
    link_.reset();
    id_ = nullptr;
    if (IsShortage(error)) return error;
    rdma_reject(request, nullptr, 0);
    rdma_destroy_id(request);
    return error;
  };
  channel_ = rdma_create_event_channel();
  if (channel_ == nullptr || fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) return refuse(errno);
  id_ = request;
  if (const int error = MakeLink(); error != 0) return refuse(error);
  if (!Adopt(peer)) return refuse(ECONNRESET);
  if (rdma_migrate_id(request, channel_) != 0) return refuse(ECONNRESET);
  uint8_t private_data[ConnectData::kSize];
  link_->Describe().Serialize(private_data);
  rdma_conn_param parameters = Parameters(private_data);
  if (rdma_accept(id_, &parameters) != 0) return refuse(IsShortage(errno) ? ECONNRESET : errno);
  state_ = State::kAccepting;
  return 0;
}

// --- ending ---

int Stream::Shutdown(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  {
    Lock lock(mutex_);
    if (closing_) return EBADF;
    Drive();
    if (state_ == State::kAccepting) Await(lock, Clock::now() + kOpenLimit, &Stream::Opened);
    if (state_ != State::kConnected) return ENOTCONN;
    if (how != SHUT_WR) read_shut_ = true;
    if (how != SHUT_RD) write_shut_ = true;
    waiters_.WakeAll();
  }
  if (how == SHUT_RD) return 0;
  std::lock_guard after_data(send_mutex_);
  Lock lock(mutex_);
  if (!up()) return 0;
  if (Await(lock, Clock::now() + kCloseLimit, &Stream::HasControlSlot) != 0 || !up()) return 0;
  PostControl(read_shut_ || peer_done_ ? Control::kDisconnect : Control::kShutdown);
  return 0;
}

// Says goodbye as soon as there is room. True: there is nothing left to wait for. Waits for nothing.
bool Stream::StepOut() {
  if (opening()) return false;
  if (state_ != State::kConnected) return true;
  if (up() && slots_free_ >= 1) PostControl(Control::kDisconnect);
  return AllSent();
}

bool Stream::Close() {
  Lock lock(mutex_);
  closing_ = true;
  waiters_.WakeAll();
  if (state_ == State::kListening) {
    // The port is free at once. Whoever still looks at the channel's descriptor keeps this alive.
    for (const Request& request : requests_) {
      rdma_reject(request.id, nullptr, 0);
      rdma_destroy_id(request.id);
    }
    requests_.clear();
    rdma_destroy_id(std::exchange(id_, nullptr));
    return true;
  }
  Drive();
  if (state_ != State::kConnected && state_ != State::kAccepting) return true;
  const bool wait = linger_.l_onoff != 0;  // socket(7): SO_LINGER; otherwise the rest goes out behind our back
  linger_until_ = Clock::now() + (wait ? std::chrono::seconds(linger_.l_linger) : kCloseLimit);
  while (!Passed(linger_until_)) {
    const uint32_t before = slots_free_;
    const auto patience = Lingering::Process().any() ? kPatienceAmongSilent : kPatience;
    const int error = Await(lock, wait ? linger_until_ : Clock::now() + patience, &Stream::CanStepOut);
    if (StepOut()) break;
    if (!wait && error != 0 && slots_free_ == before) return false;  // nothing moves
    if (wait && error != 0) break;
  }
  rdma_disconnect(id_);
  return true;
}

bool Stream::Linger() {
  Lock lock(mutex_);
  Drive();
  if (!StepOut() && !Passed(linger_until_)) return false;
  rdma_disconnect(id_);
  return true;
}

bool Stream::Farewell() {
  Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (state_ == State::kConnected || state_ == State::kAccepting) Drive();
  return state_ != State::kConnected || StepOut();
}

// --- names ---

int Stream::Name(bool peer, sockaddr_storage* name) {
  Lock lock(mutex_);
  if (closing_) return EBADF;
  Drive();
  if (peer && state_ != State::kConnected && state_ != State::kAccepting) return ENOTCONN;
  std::memset(name, 0, sizeof *name);
  name->ss_family = static_cast<sa_family_t>(domain_);
  if (id_ == nullptr) return 0;
  const sockaddr* known = peer ? rdma_get_peer_addr(id_) : rdma_get_local_addr(id_);
  if (known->sa_family == domain_) {
    std::memcpy(name, known, LengthOf(domain_));
  } else if (known->sa_family == AF_INET && domain_ == AF_INET6) {
    // An IPv4 peer of a listener on ::, as IPv6 sockets show it (ipv6(7)).
    const auto* from = reinterpret_cast<const sockaddr_in*>(known);
    auto* in6 = reinterpret_cast<sockaddr_in6*>(name);
    in6->sin6_port = from->sin_port;
    in6->sin6_addr.s6_addr[10] = in6->sin6_addr.s6_addr[11] = 0xff;
    std::memcpy(in6->sin6_addr.s6_addr + 12, &from->sin_addr, 4);
  }
  return 0;
}

}  // namespace weft::rsocket
