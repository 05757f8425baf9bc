#include "sim/cm/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"
#include "sim/cm/start_up_terminate.h"
#include "sim/device/limits.h"

namespace weft::sim {
namespace {

constexpr std::chrono::seconds kConnectLimit{20};
constexpr std::chrono::milliseconds kFirstRetry{1};
constexpr std::chrono::seconds kReplyLimit{60};     // the peer's program may take its time to answer
constexpr std::chrono::seconds kRequestLimit{10};   // a peer that connects and stays silent
constexpr std::chrono::seconds kAnnounceLimit{60};  // until the program is told of its request
constexpr std::chrono::seconds kRtrLimit{60};       // of an initiator that was accepted and says nothing (RFC 6581 section 8)

uint8_t OfferOf(rdmap::Delivery delivery) {
  switch (delivery) {
    case rdmap::Delivery::kPlain:
      return 0;
    case rdmap::Delivery::kReliable:
      return llp::Claims::kReliable;
    case rdmap::Delivery::kUnreliable:
      return llp::Claims::kUnreliable;
  }
  return 0;
}

uint16_t LimitReads(uint16_t reads) { return std::min<uint16_t>(reads, kMaxReads); }

CmEvent::Kind KindForConnectError(int error) {
  return error == ECONNREFUSED ? CmEvent::Kind::kRejected : CmEvent::Kind::kUnreachable;
}

// Of an attempt whose peer was there: as drivers/infiniband/core/cma.c has it (cma_iw_handler), whose iWARP drivers tell it of a connection that
// ends before the reply by ECONNRESET. On InfiniBand such a peer's CM rejects.
CmEvent::Kind KindForLoss(int error) {
  if (error == ECONNRESET) return CmEvent::Kind::kRejected;
  return error == ETIMEDOUT ? CmEvent::Kind::kUnreachable : CmEvent::Kind::kConnectError;
}

}  // namespace

// Watches a connection whose request is not answered, and does not keep it: who drops the request drops the connection.
class EndpointImpl::RequestWatch final : public transport::ReadyHandler {
 public:
  explicit RequestWatch(std::weak_ptr<EndpointImpl> endpoint) : endpoint_(std::move(endpoint)) {}
  void OnReady(transport::Interest ready) override {
    if (const auto endpoint = endpoint_.lock()) endpoint->OnReady(ready);
  }

 private:
  const std::weak_ptr<EndpointImpl> endpoint_;
};

EndpointImpl::~EndpointImpl() { End(/*politely=*/true); }

void EndpointImpl::SetObserver(std::shared_ptr<CmObserver> observer) {
  std::shared_ptr<RequestSink> sink;
  {
    std::lock_guard wait_for_delivery(delivery_mutex_);
    std::lock_guard lock(mutex_);
    if (observer != nullptr) sink = sink_;
    observer_ = std::move(observer);
  }
  if (sink != nullptr) sink->OnFetched(shared_from_this());
  Deliver();
}

int EndpointImpl::Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote, ibv_qp* qp,
                          const ConnectParameters& parameters) {
  std::shared_ptr<QueuePair> target = around_.queue_pair_of(qp);
  if (target == nullptr || target->state() != IBV_QPS_INIT) return EINVAL;
  const rdmap::Delivery delivery = target->delivery();
  return ConnectFor(std::move(target), local, remote, parameters, delivery, /*dialled=*/false);
}

int EndpointImpl::ConnectFor(std::shared_ptr<QueuePair> qp, const transport::SocketAddress& local,
                             const transport::SocketAddress& remote, const ConnectParameters& parameters,
                             rdmap::Delivery delivery, bool dialled, bool shares_memory) {
  std::lock_guard lock(mutex_);
  if (state_ != State::kIdle) return EINVAL;
  llp::Proposal ours = Propose(*qp, parameters, delivery);
  ours.shares_memory = shares_memory;
  auto initiator = around_.wire.Connect(local, remote, std::move(ours));
  if (!initiator.ok()) return initiator.error();
  initiator_ = std::move(initiator.value());
  qp_ = std::move(qp);
  our_ord_ = LimitReads(parameters.ord);
  options_ = OptionsFor(parameters, delivery, dialled, /*initiator=*/true);
  local_ = local;
  remote_ = remote;
  give_up_on_refusal_ = around_.network.Now() + kRefusalLimit;
  retry_after_ = kFirstRetry;
  return StartConnecting();
}

int EndpointImpl::StartConnecting() {
  if (const int error = initiator_->Begin(shared_from_this())) {
    if (IsShortage(error)) {
      LogWarning(Format("cannot connect to %s: %s", remote_.ToString().c_str(), DescribeShortage(error).c_str()));
      return error;
    }
    if (error == EINVAL) return error;
    state_ = State::kConnecting;
    // Reported as an event all the same: a program looks for it there.
    around_.network.Post([self = shared_from_this(), error] {
      {
        std::lock_guard lock(self->mutex_);
        if (self->state_ != State::kConnecting) return;
        self->OnConnectFailed(error);
      }
      self->Deliver();
    });
    return 0;
  }
  local_ = initiator_->LocalAddress();
  state_ = State::kConnecting;
  ArmTimer(kConnectLimit);
  return 0;
}

void EndpointImpl::StartResponder(std::unique_ptr<llp::Responder> responder, std::shared_ptr<RequestSink> sink) {
  std::lock_guard lock(mutex_);
  if (state_ != State::kIdle) return responder->Abandon();  // its listener is closed
  responder_ = std::move(responder);
  local_ = responder_->LocalAddress();
  remote_ = responder_->PeerAddress();
  sink_ = std::move(sink);
  state_ = State::kAwaitingRequest;
  ArmTimer(kRequestLimit);
  if (const int error = responder_->Begin(std::make_shared<RequestWatch>(weak_from_this()))) {
    FailAttempt(CmEvent::Kind::kConnectError, error, "cannot serve its session");
  }
}

void EndpointImpl::OnReady(transport::Interest) {
  bool requested = false, lost = false;
  {
    std::lock_guard lock(mutex_);
    switch (state_) {
      case State::kConnecting:
      case State::kAwaitingAnswer:
        OnProgress(initiator_->Advance());
        break;
      case State::kAwaitingRequest:
      case State::kRequested:
        requested = OnProgress(responder_->Advance());
        lost = state_ == State::kClosed;
        break;
      default:
        break;
    }
  }
  if (const int failed = HandOver()) {
    std::lock_guard lock(mutex_);
    Tell({.kind = CmEvent::Kind::kConnectError, .error = failed});
  }
  Deliver();
  if (requested) {
    std::shared_ptr<RequestSink> sink;
    {
      std::lock_guard lock(mutex_);
      sink = sink_;
    }
    if (sink) sink->OnRequest(shared_from_this());
  }
  if (lost) ReportLoss();
}

bool EndpointImpl::OnProgress(llp::Progress progress) {
  using Kind = llp::Progress::Kind;
  switch (progress.kind) {
    case Kind::kNothing:
      return false;
    case Kind::kReached:
      local_ = initiator_->LocalAddress();
      state_ = State::kAwaitingAnswer;
      ArmTimer(kReplyLimit);
      return false;
    case Kind::kAccepted:
      PrepareHandover(progress.agreement);
      established_.private_data = std::move(progress.agreement.private_data);
      return false;
    case Kind::kRejected:
      StopTimer();
      state_ = State::kClosed;
      initiator_.reset();
      qp_.reset();
      Tell({.kind = CmEvent::Kind::kRejected,
            .reason = progress.agreement.claims && progress.agreement.claims->option_refused ? CmEvent::Reason::kVendorOption
                                                                                             : CmEvent::Reason::kConsumerDefined,
            .error = ECONNREFUSED,
            .private_data = std::move(progress.agreement.private_data)});
      return false;
    case Kind::kRequested:
      StopTimer();
      state_ = State::kRequested;
      request_ = std::move(progress.request);
      ArmTimer(kAnnounceLimit);
      return true;
    case Kind::kUnreachable:
      OnConnectFailed(progress.error);
      return false;
    case Kind::kUnanswered:
    case Kind::kUnanswerable:
      if (TryAgainUnanswered(/*in_order=*/progress.kind == Kind::kUnanswerable)) return false;
      break;
    case Kind::kLost:
      if (progress.terminate_code) {
        initiator_->Refuse(
            [code = *progress.terminate_code](llp::UlpduWriter& writer) { AppendStartUpTerminate(writer, code); });
      }
      break;
  }
  const int error = progress.error == EPIPE ? ECONNRESET : progress.error;
  FailAttempt(initiator_ != nullptr ? KindForLoss(error) : CmEvent::Kind::kConnectError, error, progress.why);
  return false;
}

void EndpointImpl::OnConnectFailed(int error) {
  if (error != ECONNREFUSED || around_.network.Now() + retry_after_ > give_up_on_refusal_) {
    return FailAttempt(KindForConnectError(error), error, "cannot connect");
  }
  TryAgainLater();
}

// The peer had no room for us, or does not know what we asked. A reset is for a while taken for the former.
bool EndpointImpl::TryAgainUnanswered(bool in_order) {
  StopTimer();
  initiator_->Abandon();
  const transport::Time now = around_.network.Now();
  if (give_up_on_reset_ == transport::Time{}) {
    give_up_on_reset_ = now + kRefusalLimit;
    retry_after_ = kFirstRetry;
  }
  if (!in_order && !fell_back_ && now + retry_after_ <= give_up_on_reset_) {
    TryAgainLater();
    return true;
  }
  fell_back_ = initiator_->FallBack();
  return fell_back_ && StartConnecting() == 0;
}

void EndpointImpl::TryAgainLater() {
  StopTimer();
  initiator_->Abandon();
  state_ = State::kRefused;
  timer_ = around_.network.RunAt(around_.network.Now() + retry_after_, [weak = weak_from_this(), attempt = attempt_] {
    if (auto self = weak.lock()) self->OnRetryTime(attempt);
  });
  retry_after_ *= 2;
}

void EndpointImpl::OnRetryTime(uint64_t attempt) {
  {
    std::lock_guard lock(mutex_);
    if (attempt != attempt_ || state_ != State::kRefused) return;
    timer_ = 0;
    if (const int error = StartConnecting()) FailAttempt(CmEvent::Kind::kUnreachable, error, "cannot connect again");
  }
  Deliver();
}

llp::Proposal EndpointImpl::Propose(const QueuePair& qp, const ConnectParameters& parameters,
                                    rdmap::Delivery delivery) const {
  return {.ird = LimitReads(parameters.ird),
          .ord = LimitReads(parameters.ord),
          .private_data = parameters.private_data,
          .claims = {.host_id = around_.host_id, .offers = static_cast<uint8_t>(OfferOf(delivery) | (qp.offers_atomics() ? llp::Claims::kAtomics : 0))},
          .queue_pair = qp.number(),
          .device = qp.device(),
          .comment = qp.CaptureComment()};
}

EstablishOptions EndpointImpl::OptionsFor(const ConnectParameters& parameters, rdmap::Delivery delivery, bool dialled,
                                          bool initiator) {
  return {.terms = {.delivery = delivery, .initiator = initiator},
          .dialled = dialled,
          .rnr_retry = parameters.rnr_retry,
          .retry_count = parameters.retry_count,
          .ack_timeout = parameters.ack_timeout};
}

void EndpointImpl::PrepareHandover(const llp::Agreement& agreement) {
  StopTimer();
  state_ = State::kConnected;
  ConnectionTerms& terms = options_.terms;
  terms.outcome = agreement.outcome;
  if (!agreement.reads_agreed) {
    // The peer may have as many Reads outstanding as its program asked for there, so we take as many as we can.
    terms.outcome.ird = kMaxReads;
    terms.outcome.ord = our_ord_;
  }
  const uint8_t offers = agreement.claims ? agreement.claims->offers : 0;
  if ((offers & OfferOf(terms.delivery)) == 0) terms.delivery = rdmap::Delivery::kPlain;
  terms.atomics = (offers & llp::Claims::kAtomics) != 0 && qp_->offers_atomics();
  established_ = {.kind = CmEvent::Kind::kEstablished, .ird = terms.outcome.ird, .ord = terms.outcome.ord};
  handover_ = true;
}

int EndpointImpl::HandOver() {
  std::shared_ptr<QueuePair> qp;
  std::unique_ptr<llp::Initiator> initiator;
  std::unique_ptr<llp::Responder> responder;
  EstablishOptions options;
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(handover_, false)) return 0;  // nothing to do, or Close() came first
    qp = qp_;
    initiator = std::move(initiator_);
    responder = std::move(responder_);
    options = options_;
  }
  options.observer = shared_from_this();
  const bool established_now = options.terms.initiator || options.terms.outcome.rtr == llp::Rtr::kNone;
  auto channel = initiator != nullptr ? initiator->TakeChannel() : responder->TakeChannel();
  const int failed = qp->Establish(std::move(channel), std::move(options));  // may call back
  if (failed == 0) {
    if (established_now) {
      OnEstablished();
    } else {
      std::lock_guard lock(mutex_);
      if (state_ == State::kConnected && !established_told_) ArmTimer(kRtrLimit);
    }
    return 0;
  }
  std::lock_guard lock(mutex_);
  qp_.reset();
  state_ = State::kClosed;
  return failed;
}

void EndpointImpl::LimitAnswer(std::chrono::seconds limit) {
  std::lock_guard lock(mutex_);
  if (state_ == State::kRequested) ArmTimer(limit);
}

CmEvent EndpointImpl::DescribeRequest() {
  std::lock_guard lock(mutex_);
  if (timer_ != 0) around_.network.Cancel(std::exchange(timer_, 0));
  CmEvent event{
      .kind = CmEvent::Kind::kConnectRequest, .ird = kMaxReads, .ord = kMaxReads, .endpoint = shared_from_this()};
  event.private_data = request_.private_data;
  if (request_.reads) {
    event.ird = LimitReads(request_.reads->ird);
    event.ord = LimitReads(request_.reads->ord);
  }
  return event;
}

int EndpointImpl::Accept(ibv_qp* qp, const ConnectParameters& parameters) {
  std::shared_ptr<QueuePair> target = around_.queue_pair_of(qp);
  if (target == nullptr || target->state() != IBV_QPS_INIT) return EINVAL;
  const rdmap::Delivery delivery = target->delivery();
  return AcceptFor(std::move(target), parameters, delivery, /*dialled=*/false);
}

int EndpointImpl::AcceptFor(std::shared_ptr<QueuePair> target, const ConnectParameters& parameters,
                            rdmap::Delivery delivery, bool dialled) {
  {
    std::lock_guard lock(mutex_);
    // The peer may have left since the program was told of it.
    if (state_ != State::kRequested) return state_ == State::kClosed ? ECONNRESET : EINVAL;
    auto agreement = responder_->Accept(Propose(*target, parameters, delivery));
    if (!agreement.ok()) return agreement.error();
    qp_ = std::move(target);
    options_ = OptionsFor(parameters, delivery, dialled, /*initiator=*/false);
    our_ord_ = LimitReads(parameters.ord);
    PrepareHandover(*agreement);
  }
  const int failed = HandOver();
  ReleaseSink();
  Deliver();
  if (failed != 0) return failed;
  std::lock_guard lock(mutex_);
  return state_ == State::kClosed && !established_told_ ? ECONNABORTED : 0;
}

int EndpointImpl::Reject(const std::vector<uint8_t>& private_data, CmEvent::Reason reason) {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kRequested) return EINVAL;
    const llp::Claims claims{.host_id = around_.host_id, .option_refused = reason == CmEvent::Reason::kVendorOption};
    if (const int error = responder_->Reject(private_data, &claims)) return error;
    StopTimer();
    state_ = State::kClosed;
  }
  ReleaseSink();
  return 0;
}

int EndpointImpl::Disconnect() {
  std::shared_ptr<QueuePair> qp;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kConnected) return ENOTCONN;
    qp = qp_;
  }
  return qp == nullptr ? ENOTCONN : qp->Disconnect();
}

void EndpointImpl::End(bool politely) {
  {
    std::lock_guard lock(mutex_);
    StopTimer();
    if (state_ == State::kRequested && politely) responder_->Reject({}, nullptr);
    EndHandshake();
    handover_ = false;
    qp_.reset();
    pending_.clear();
    state_ = State::kClosed;
  }
  ReleaseSink();
}

bool EndpointImpl::GiveWay() {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kRequested) return false;
    FailAttempt(CmEvent::Kind::kConnectError, ECONNABORTED, "dropped to make room for others: no descriptor is left");
  }
  Deliver();
  ReportLoss();
  return true;
}

void EndpointImpl::OnTimeout(uint64_t attempt) {
  bool lost = false;
  std::shared_ptr<QueuePair> silent;
  {
    std::lock_guard lock(mutex_);
    if (attempt != attempt_ || timer_ == 0) return;
    timer_ = 0;
    if (state_ == State::kConnected) {
      silent = qp_;
      LogWarning(Format("connection from %s: no first message within %lld s after it was accepted", remote_.ToString().c_str(),
                        static_cast<long long>(kRtrLimit.count())));
    } else {
      lost = state_ == State::kAwaitingRequest || state_ == State::kRequested;
      const llp::Handshake& handshake =
          initiator_ != nullptr ? static_cast<const llp::Handshake&>(*initiator_) : *responder_;
      FailAttempt(CmEvent::Kind::kUnreachable, ETIMEDOUT, handshake.missing());
    }
  }
  if (silent != nullptr) silent->Disconnect();  // OnDisconnected() follows
  Deliver();
  if (lost) ReportLoss();
}

void EndpointImpl::FailAttempt(CmEvent::Kind kind, int error, const std::string& why) {
  const State was = state_;
  StopTimer();
  EndHandshake();
  state_ = State::kClosed;
  qp_.reset();
  const bool from = was == State::kAwaitingRequest || was == State::kRequested;
  const std::string line = Format("connection %s %s: %s (%s)", from ? "from" : "to", remote_.ToString().c_str(),
                                  why.c_str(), std::strerror(error));
  // A peer that left before it had said what it wants gave its attempt up, or was a stranger.
  if ((was == State::kAwaitingRequest && error != ECONNRESET) || error == EPROTO) {
    LogWarning(line);
  } else if (TraceEnabled()) {
    Trace(line);
  }
  if (was == State::kAwaitingRequest) return;
  Tell({.kind = kind,
        .reason = error == ECONNREFUSED ? CmEvent::Reason::kInvalidServiceId : CmEvent::Reason::kConsumerDefined,
        .error = error});
}

void EndpointImpl::EndHandshake() {
  if (initiator_ != nullptr) initiator_->Abandon();
  if (responder_ != nullptr) responder_->Abandon();
  initiator_.reset();
  responder_.reset();
}

void EndpointImpl::StopTimer() {
  if (timer_ != 0) around_.network.Cancel(std::exchange(timer_, 0));
  ++attempt_;
}

void EndpointImpl::ArmTimer(std::chrono::seconds limit) {
  if (timer_ != 0) around_.network.Cancel(timer_);
  timer_ = around_.network.RunAt(around_.network.Now() + limit, [weak = weak_from_this(), attempt = ++attempt_] {
    if (auto self = weak.lock()) self->OnTimeout(attempt);
  });
}

void EndpointImpl::OnEstablished() {
  {
    std::lock_guard lock(mutex_);
    if (established_told_ || state_ != State::kConnected) return;
    StopTimer();
    established_told_ = true;
    Tell(established_);
  }
  Deliver();
}

void EndpointImpl::OnDisconnected(bool was_established) {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kConnected) return;
    StopTimer();
    state_ = State::kClosed;
    qp_.reset();
    if (!established_told_ && was_established)
      Tell(established_);  // the news of it is still under way on another thread
    // Also where the RTR of a peer that we answered never came: so Linux has it, and servers that live on rely on it.
    Tell({.kind = CmEvent::Kind::kDisconnected});
    established_told_ = true;
  }
  Deliver();
}

void EndpointImpl::Tell(CmEvent event) { pending_.push_back(std::move(event)); }

void EndpointImpl::Deliver() {
  std::lock_guard delivering(delivery_mutex_);
  for (;;) {
    std::shared_ptr<CmObserver> observer;
    CmEvent event;
    {
      std::lock_guard lock(mutex_);
      if (pending_.empty() || observer_ == nullptr) return;
      observer = observer_;
      event = std::move(pending_.front());
      pending_.pop_front();
    }
    observer->OnCmEvent(std::move(event));
  }
}

void EndpointImpl::ReportLoss() {
  std::shared_ptr<RequestSink> sink;
  {
    std::lock_guard lock(mutex_);
    sink = sink_;
  }
  if (sink) sink->OnLost(*this);
}

void EndpointImpl::ReleaseSink() {
  std::shared_ptr<RequestSink> sink;
  {
    std::lock_guard lock(mutex_);
    sink = std::move(sink_);
  }
  if (sink) sink->OnDone(*this);
}

transport::SocketAddress EndpointImpl::local_address() const {
  std::lock_guard lock(mutex_);
  return local_;
}

transport::SocketAddress EndpointImpl::remote_address() const {
  std::lock_guard lock(mutex_);
  return remote_;
}

}  // namespace weft::sim
