#include "sim/cm/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"
#include "faults/stream.h"
#include "mpa/channel/lingering_close.h"
#include "mpa/fpdu_layout.h"
#include "sim/cm/start_up_terminate.h"
#include "sim/device/limits.h"
#include "transport/pcap.h"

namespace weft::sim {
namespace {

using transport::IoResult;

constexpr std::chrono::seconds kConnectLimit{20};  // TCP
constexpr std::chrono::milliseconds kFirstRetry{1};
constexpr std::chrono::seconds kReplyLimit{60};    // the peer's program may take its time to answer
constexpr std::chrono::seconds kRequestLimit{10};  // a peer that connects and stays silent
constexpr std::chrono::seconds kAnnounceLimit{60}; // until the program is told of its request

// Towards others: a whole FPDU in a TCP segment (RFC 5044 section 5), and no longer than RNICs are known to take.
constexpr size_t kForeignFpdu = 16384;
constexpr size_t kSmallestUlpdu = 128;

// With revision 1 nothing was said of IRD and ORD: the peer may have as many Reads outstanding as its program asked for there, so
// we take as many as we can.
void FillInReads(const mpa::StartParams& ours, mpa::StartOutcome& outcome) {
  if (outcome.has_ird_ord) return;
  outcome.ird = kMaxReads;
  outcome.ord = ours.ord;
}

// A fault will damage frames of this connection: only CRC finds it.
bool FaultsWantCrc(const QueuePair& qp, const transport::SocketAddress& peer) {
  return faults::Enabled(faults::Kind::kCorrupt) && faults::WantsCrc({.qp = qp.number(), .device = qp.device()}, peer);
}

CmEvent::Kind KindForConnectError(int error) {
  return error == ECONNREFUSED ? CmEvent::Kind::kRejected : CmEvent::Kind::kUnreachable;
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
  {
    std::lock_guard wait_for_delivery(delivery_mutex_);
    std::lock_guard lock(mutex_);
    observer_ = std::move(observer);
  }
  Deliver();
}

int EndpointImpl::Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote, ibv_qp* qp,
                          const ConnectParameters& parameters) {
  std::shared_ptr<QueuePair> target = queue_pair_of_ == nullptr ? nullptr : queue_pair_of_(qp);
  if (target == nullptr || target->state() != IBV_QPS_INIT) return EINVAL;
  const rdmap::Delivery delivery = target->delivery();
  return ConnectFor(std::move(target), local, remote, parameters, delivery, /*dialled=*/false);
}

int EndpointImpl::ConnectFor(std::shared_ptr<QueuePair> qp, const transport::SocketAddress& local,
                             const transport::SocketAddress& remote, const ConnectParameters& parameters,
                             rdmap::Delivery delivery, bool dialled) {
  std::lock_guard lock(mutex_);
  if (state_ != State::kIdle) return EINVAL;
  revision_ = static_cast<uint8_t>(adapter_.settings().mpa_revision);
  const size_t words = revision_ >= 2 ? mpa::kIrdOrdLength : 0;
  if (parameters.private_data.size() + words > mpa::kMaxPrivateData) return EINVAL;
  qp_ = std::move(qp);
  delivery_ = delivery;
  dialled_ = dialled;
  parameters_ = parameters;
  local_ = bind_to_ = local;
  remote_ = remote;
  give_up_on_refusal_ = adapter_.network().Now() + kRefusalLimit;
  retry_after_ = kFirstRetry;
  give_up_on_reset_ = {};
  return StartConnecting();
}

int EndpointImpl::StartConnecting() {
  got_bytes_ = closed_in_order_ = false;
  auto socket = adapter_.network().StartConnect(bind_to_, remote_);
  if (!socket.ok()) {
    const int error = socket.error();
    if (IsShortage(error)) {
      LogWarning(Format("cannot connect to %s: %s", remote_.ToString().c_str(), DescribeShortage(error).c_str()));
      return error;
    }
    if (error == EINVAL) return error;
    state_ = State::kConnecting;
    // Reported as an event all the same: a program looks for it there.
    adapter_.network().Post([self = shared_from_this(), error] {
      {
        std::lock_guard lock(self->mutex_);
        if (self->state_ != State::kConnecting) return;
        self->OnConnectFailed(error);
      }
      self->Deliver();
    });
    return 0;
  }
  socket_ = transport::CaptureIfAsked(std::move(socket.value()), /*initiator=*/true);
  socket_->Annotate(qp_->CaptureComment());
  local_ = socket_->LocalAddress();
  state_ = State::kConnecting;
  ArmTimer(kConnectLimit);
  watch_ = adapter_.network().Watch(*socket_, {.read = false, .write = true}, shared_from_this());
  return 0;
}

void EndpointImpl::StartResponder(std::unique_ptr<transport::ByteStream> socket, std::shared_ptr<RequestSink> sink) {
  std::lock_guard lock(mutex_);
  if (state_ != State::kIdle) return socket->Abort();  // its listener is closed
  socket_ = transport::CaptureIfAsked(std::move(socket), /*initiator=*/false);
  local_ = socket_->LocalAddress();
  remote_ = socket_->PeerAddress();
  sink_ = std::move(sink);
  state_ = State::kAwaitingRequest;
  frame_.emplace(/*expect_reply=*/false);
  ArmTimer(kRequestLimit);
  watch_ = adapter_.network().Watch(*socket_, {.read = true, .write = false}, shared_from_this());
}

void EndpointImpl::OnReady(transport::Interest) {
  bool requested = false, lost = false;
  {
    std::lock_guard lock(mutex_);
    switch (state_) {
      case State::kConnecting:
        OnConnectReady();
        break;
      case State::kSendingRequest:
        ContinueRequest();
        break;
      case State::kAwaitingReply:
        OnReplyBytes();
        break;
      case State::kAwaitingRequest:
        requested = OnRequestBytes();
        lost = state_ == State::kClosed;
        break;
      case State::kRequested:
        OnUnansweredReady();
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

void EndpointImpl::OnConnectReady() {
  const int error = socket_->ConnectError();
  if (error == EINPROGRESS) return;
  if (error != 0) return OnConnectFailed(error);
  local_ = socket_->LocalAddress();
  SendRequest();
}

void EndpointImpl::OnConnectFailed(int error) {
  transport::Network& network = adapter_.network();
  if (error != ECONNREFUSED || network.Now() + retry_after_ > give_up_on_refusal_) {
    return FailAttempt(KindForConnectError(error), error, "cannot connect");
  }
  TryAgainLater();
}

// A reset before a byte of the answer: the peer had no room for us, or knows revision 1 only and closes on a revision 2 request instead of
// answering it (RFC 6581 section 3). For a while it is taken for the former.
bool EndpointImpl::TryAgainAfterReset() {
  const transport::Time now = adapter_.network().Now();
  if (give_up_on_reset_ == transport::Time{}) {
    give_up_on_reset_ = now + kRefusalLimit;
    retry_after_ = kFirstRetry;
  }
  if (!closed_in_order_ && revision_ == adapter_.settings().mpa_revision && now + retry_after_ <= give_up_on_reset_) {
    TryAgainLater();
    return true;
  }
  if (revision_ < 2) return false;
  revision_ = 1;
  return StartConnecting() == 0;
}

void EndpointImpl::TryAgainLater() {
  transport::Network& network = adapter_.network();
  StopWatching();
  socket_.reset();
  state_ = State::kRefused;
  timer_ = network.RunAt(network.Now() + retry_after_, [weak = weak_from_this(), attempt = attempt_] {
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

bool EndpointImpl::IsSameHost() const { return remote_.is_loopback() || remote_.SameHost(local_); }

mpa::StartParams EndpointImpl::OurParams(const ConnectParameters& parameters) const {
  mpa::StartParams ours;
  ours.revision = revision_;
  ours.markers = adapter_.settings().markers;
  ours.ird = std::min<uint16_t>(parameters.ird, kMaxReads);
  ours.ord = std::min<uint16_t>(parameters.ord, kMaxReads);
  ours.private_data = parameters.private_data;
  return ours;
}

void EndpointImpl::SendRequest() {
  ours_ = OurParams(parameters_);
  ours_.peer_to_peer = revision_ >= 2;
  const Settings& settings = adapter_.settings();
  const bool same_host = IsSameHost();
  // Auto: without CRC only where the peer can be on this host; a Weft responder there agrees, others may insist (RFC 5044
  // section 7.1.1: either side's wish is enough).
  ours_.crc = settings.crc == CrcPolicy::kOn || (settings.crc == CrcPolicy::kAuto && !(same_host && settings.extensions)) ||
              FaultsWantCrc(*qp_, remote_);
  const size_t words = revision_ >= 2 ? mpa::kIrdOrdLength : 0;
  if (settings.extensions && ours_.private_data.size() + words + mpa::WeftTrailer::kLength <= mpa::kMaxPrivateData) {
    mpa::WeftTrailer{.max_ulpdu = kLargestUlpdu, .flags = Flags(), .host_id = adapter_.host_id()}.AppendTo(ours_.private_data);
  }
  unsent_ = mpa::MakeRequest(ours_).Serialize();
  state_ = State::kSendingRequest;
  ArmTimer(kReplyLimit);
  ContinueRequest();
}

void EndpointImpl::ContinueRequest() {
  const iovec piece{unsent_.data(), unsent_.size()};
  const IoResult result = socket_->Write({&piece, 1});
  if (result.kind == IoResult::Kind::kFailed) {
    return FailAttempt(CmEvent::Kind::kConnectError, result.error, "cannot send the MPA request");
  }
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<ptrdiff_t>(result.bytes));
  if (!unsent_.empty()) return;  // still watched for writing
  state_ = State::kAwaitingReply;
  frame_.emplace(/*expect_reply=*/true);
  adapter_.network().SetInterest(watch_, {.read = true, .write = false});
}

bool EndpointImpl::ReadFrame(const char* what) {
  for (;;) {
    const MutableByteSpan into = frame_->PrepareRead();
    const iovec piece{into.data(), into.size()};
    const IoResult result = socket_->Read({&piece, 1});
    switch (result.kind) {
      case IoResult::Kind::kWouldBlock:
        return false;
      case IoResult::Kind::kEndOfStream:
      case IoResult::Kind::kFailed:
        closed_in_order_ = result.kind == IoResult::Kind::kEndOfStream;
        FailAttempt(CmEvent::Kind::kConnectError, result.error != 0 ? result.error : ECONNRESET,
                    Format("the connection was closed before the %s was complete", what));
        return false;
      case IoResult::Kind::kDone:
        break;
    }
    got_bytes_ = true;
    const mpa::StartError error = frame_->Commit(result.bytes);
    if (error != mpa::StartError::kNone) {
      FailAttempt(CmEvent::Kind::kConnectError, EPROTO, Format("bad %s: %s", what, mpa::ToString(error)));
      return false;
    }
    if (frame_->complete()) return true;
  }
}

void EndpointImpl::OnReplyBytes() {
  if (ReadFrame("MPA reply")) OnReply();
}

void EndpointImpl::OnReply() {
  mpa::StartOutcome outcome;
  const mpa::StartError error = mpa::OnReply(ours_, frame_->frame(), &outcome);
  trailer_ = TakeTrailer(outcome.private_data);
  if (error == mpa::StartError::kRejected) {
    StopWatching();
    state_ = State::kClosed;
    socket_.reset();
    qp_.reset();
    Tell({.kind = CmEvent::Kind::kRejected, .error = ECONNREFUSED, .private_data = std::move(outcome.private_data)});
    return;
  }
  if (error != mpa::StartError::kNone) return RefuseReply(error, outcome);
  FillInReads(ours_, outcome);
  StopWatching();
  state_ = State::kConnected;
  established_ = {.kind = CmEvent::Kind::kEstablished,
                  .private_data = outcome.private_data,
                  .ird = outcome.ird,
                  .ord = outcome.ord};
  PrepareHandover(outcome, parameters_, Agreed(), /*initiator=*/true, {});
}

void EndpointImpl::PrepareHandover(const mpa::StartOutcome& outcome, const ConnectParameters& parameters, rdmap::Delivery agreed,
                                   bool initiator, std::vector<uint8_t> reply) {
  handover_ = {.options = {.outcome = {.ird = outcome.ird, .ord = outcome.ord, .rtr = outcome.rtr},
                           .initiator = initiator,
                           .dialled = dialled_,
                           .delivery = agreed,
                           .rnr_retry = parameters.rnr_retry,
                           .retry_count = parameters.retry_count,
                           .ack_timeout = parameters.ack_timeout,
                           .observer = shared_from_this()},
               .framing = {.initiator = initiator,
                           .revision = outcome.revision,
                           .crc = outcome.crc,
                           .send_markers = outcome.send_markers,
                           .receive_markers = outcome.receive_markers,
                           .max_ulpdu = MaxUlpdu(outcome, trailer_),
                           .prologue = std::move(reply),
                           .probe = initiator && !trailer_,
                           .queue_pair = qp_->number(),
                           .device = qp_->device(),
                           .start_up_write = initiator && outcome.rtr != llp::Rtr::kNone}};
}

void EndpointImpl::RefuseReply(mpa::StartError error, const mpa::StartOutcome& outcome) {
  if (auto last_words = StartUpTerminate(error, outcome, adapter_.pool()); !last_words.empty()) {
    StopWatching();
    mpa::CloseLingering(adapter_.network(), std::move(socket_), std::move(last_words));
  }
  FailAttempt(CmEvent::Kind::kConnectError, EPROTO, Format("bad MPA reply: %s", mpa::ToString(error)));
}

int EndpointImpl::HandOver() {
  std::shared_ptr<QueuePair> qp;
  std::unique_ptr<transport::ByteStream> socket;
  Handover handover;
  {
    std::lock_guard lock(mutex_);
    if (!handover_) return 0;  // nothing to do, or Close() came first
    handover = std::move(*handover_);
    handover_.reset();
    qp = qp_;
    socket = std::move(socket_);
  }
  EstablishOptions& options = handover.options;
  const bool established_now = options.initiator || options.outcome.rtr == llp::Rtr::kNone;
  auto channel = std::make_unique<mpa::Channel>(adapter_.network(), adapter_.pool(), std::move(socket), std::move(handover.framing));
  const int failed = qp->Establish(std::move(channel), std::move(options));  // may call back
  if (failed == 0) {
    if (established_now) OnEstablished();
    return 0;
  }
  std::lock_guard lock(mutex_);
  qp_.reset();
  state_ = State::kClosed;
  return failed;
}

bool EndpointImpl::OnRequestBytes() {
  if (!ReadFrame("MPA request")) return false;
  StopWatching();
  state_ = State::kRequested;
  request_ = mpa::DescribeRequest(frame_->frame());
  trailer_ = TakeTrailer(request_.private_data);
  ArmTimer(kAnnounceLimit);
  watch_ = adapter_.network().Watch(*socket_, {.read = true, .write = false}, std::make_shared<RequestWatch>(weak_from_this()));
  return true;
}

// The peer may send nothing before it has the answer (RFC 5044 section 7.1.2), so that whatever comes ends the connection.
void EndpointImpl::OnUnansweredReady() {
  uint8_t byte;
  const iovec into{&byte, 1};
  const IoResult result = socket_->Read({&into, 1});
  switch (result.kind) {
    case IoResult::Kind::kWouldBlock:
      return;
    case IoResult::Kind::kDone:
      return FailAttempt(CmEvent::Kind::kConnectError, EPROTO, "it sends before its MPA request is answered");
    case IoResult::Kind::kEndOfStream:
    case IoResult::Kind::kFailed:
      return FailAttempt(CmEvent::Kind::kConnectError, result.error != 0 ? result.error : ECONNRESET,
                         "it left before its MPA request was answered");
  }
}

void EndpointImpl::LimitAnswer(std::chrono::seconds limit) {
  std::lock_guard lock(mutex_);
  if (state_ == State::kRequested) ArmTimer(limit);
}

CmEvent EndpointImpl::DescribeRequest() {
  std::lock_guard lock(mutex_);
  if (timer_ != 0) adapter_.network().Cancel(std::exchange(timer_, 0));
  return {.kind = CmEvent::Kind::kConnectRequest,
          .private_data = request_.private_data,
          .ird = std::min<uint16_t>(request_.has_ird_ord ? request_.ird : uint16_t{kMaxReads}, kMaxReads),
          .ord = std::min<uint16_t>(request_.has_ird_ord ? request_.ord : uint16_t{kMaxReads}, kMaxReads),
          .endpoint = shared_from_this()};
}

int EndpointImpl::Accept(ibv_qp* qp, const ConnectParameters& parameters) {
  std::shared_ptr<QueuePair> target = queue_pair_of_ == nullptr ? nullptr : queue_pair_of_(qp);
  if (target == nullptr || target->state() != IBV_QPS_INIT) return EINVAL;
  const rdmap::Delivery delivery = target->delivery();
  return AcceptFor(std::move(target), parameters, delivery, /*dialled=*/false);
}

int EndpointImpl::AcceptFor(std::shared_ptr<QueuePair> target, const ConnectParameters& parameters, rdmap::Delivery delivery,
                            bool dialled) {
  {
    std::lock_guard lock(mutex_);
    // The peer may have left since the program was told of it.
    if (state_ != State::kRequested) return state_ == State::kClosed ? ECONNRESET : EINVAL;
    delivery_ = delivery;
    const mpa::StartFrame& request = frame_->frame();
    const size_t words = request.enhanced ? mpa::kIrdOrdLength : 0;
    if (parameters.private_data.size() + words > mpa::kMaxPrivateData) return EINVAL;

    const Settings& settings = adapter_.settings();
    revision_ = static_cast<uint8_t>(settings.mpa_revision);
    ours_ = OurParams(parameters);
    // What the peer says of its host is a claim. That its address is ours is proven: nobody else's answers reach it. The claim is needed all
    // the same, since a forwarder (ssh, a virtual machine's network) has our address too.
    const bool same_host = trailer_ && trailer_->host_id == adapter_.host_id() && IsSameHost();
    ours_.crc = settings.crc == CrcPolicy::kOn || (settings.crc == CrcPolicy::kAuto && !same_host) || FaultsWantCrc(*target, remote_);
    rdmap::Delivery agreed = rdmap::Delivery::kPlain;
    if (trailer_ && ours_.private_data.size() + words + mpa::WeftTrailer::kLength <= mpa::kMaxPrivateData) {
      mpa::WeftTrailer{.max_ulpdu = kLargestUlpdu, .flags = Flags(), .host_id = adapter_.host_id()}.AppendTo(ours_.private_data);
      agreed = Agreed();
    }
    mpa::StartOutcome outcome;
    std::vector<uint8_t> reply = mpa::MakeReply(request, ours_, &outcome).Serialize();
    FillInReads(ours_, outcome);
    StopWatching();
    state_ = State::kConnected;
    qp_ = target;
    dialled_ = dialled;
    established_ = {.kind = CmEvent::Kind::kEstablished, .ird = outcome.ird, .ord = outcome.ord};
    PrepareHandover(outcome, parameters, agreed, /*initiator=*/false, std::move(reply));
  }
  const int failed = HandOver();
  ReleaseSink();
  Deliver();
  if (failed != 0) return failed;
  std::lock_guard lock(mutex_);
  return state_ == State::kClosed && !established_told_ ? ECONNABORTED : 0;
}

int EndpointImpl::Reject(const std::vector<uint8_t>& private_data) {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kRequested) return EINVAL;
    const mpa::StartFrame& request = frame_->frame();
    const size_t words = request.enhanced ? mpa::kIrdOrdLength : 0;
    if (private_data.size() + words > mpa::kMaxPrivateData) return EINVAL;
    StopWatching();
    state_ = State::kClosed;
    std::vector<uint8_t> theirs = private_data;
    if (trailer_ && theirs.size() + words + mpa::WeftTrailer::kLength <= mpa::kMaxPrivateData) {
      mpa::WeftTrailer{.max_ulpdu = kLargestUlpdu, .host_id = adapter_.host_id()}.AppendTo(theirs);
    }
    mpa::CloseLingering(adapter_.network(), std::move(socket_), mpa::MakeReject(request, theirs).Serialize());
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
    StopWatching();
    if (state_ == State::kRequested && politely) {
      mpa::CloseLingering(adapter_.network(), std::move(socket_), mpa::MakeReject(frame_->frame(), {}).Serialize());
    }
    if (socket_) socket_->Abort();
    socket_.reset();
    handover_.reset();
    qp_.reset();
    pending_.clear();
    state_ = State::kClosed;
  }
  ReleaseSink();
}

void EndpointImpl::OnTimeout(uint64_t attempt) {
  bool lost = false;
  {
    std::lock_guard lock(mutex_);
    if (attempt != attempt_ || timer_ == 0) return;
    timer_ = 0;
    lost = state_ == State::kAwaitingRequest || state_ == State::kRequested;
    FailAttempt(CmEvent::Kind::kUnreachable, ETIMEDOUT,
                state_ == State::kConnecting       ? "no answer to the TCP connection request"
                : state_ == State::kAwaitingReply ? "no MPA reply"
                : state_ == State::kRequested     ? "its MPA request was not answered"
                                                  : "no complete MPA request");
  }
  Deliver();
  if (lost) ReportLoss();
}

void EndpointImpl::FailAttempt(CmEvent::Kind kind, int error, const std::string& why) {
  const State was = state_;
  StopWatching();
  if (socket_) socket_->Abort();
  socket_.reset();
  const bool unanswered = was == State::kSendingRequest || was == State::kAwaitingReply;
  if (unanswered && !got_bytes_ && (error == ECONNRESET || error == EPIPE) && TryAgainAfterReset()) return;
  state_ = State::kClosed;
  qp_.reset();
  const bool from = was == State::kAwaitingRequest || was == State::kRequested;
  const std::string line = Format("connection %s %s: %s (%s)", from ? "from" : "to", remote_.ToString().c_str(), why.c_str(), std::strerror(error));
  if (was == State::kAwaitingRequest || error == EPROTO) {
    LogWarning(line);
  } else if (TraceEnabled()) {
    Trace(line);
  }
  if (was != State::kAwaitingRequest) Tell({.kind = kind, .error = error});
}

void EndpointImpl::StopWatching() {
  if (watch_ != 0) adapter_.network().Unwatch(std::exchange(watch_, 0));
  if (timer_ != 0) adapter_.network().Cancel(std::exchange(timer_, 0));
  ++attempt_;
}

void EndpointImpl::ArmTimer(std::chrono::seconds limit) {
  if (timer_ != 0) adapter_.network().Cancel(timer_);
  timer_ = adapter_.network().RunAt(adapter_.network().Now() + limit, [weak = weak_from_this(), attempt = ++attempt_] {
    if (auto self = weak.lock()) self->OnTimeout(attempt);
  });
}

std::optional<mpa::WeftTrailer> EndpointImpl::TakeTrailer(std::vector<uint8_t>& private_data) const {
  if (!adapter_.settings().extensions) return std::nullopt;
  return mpa::WeftTrailer::TakeFrom(private_data);
}

uint8_t EndpointImpl::Flags() const {
  switch (delivery_) {
    case rdmap::Delivery::kPlain:
      return 0;
    case rdmap::Delivery::kReliable:
      return mpa::WeftTrailer::kReliable;
    case rdmap::Delivery::kUnreliable:
      return mpa::WeftTrailer::kUnreliable;
  }
  return 0;
}

rdmap::Delivery EndpointImpl::Agreed() const {
  return trailer_ && (trailer_->flags & Flags()) != 0 ? delivery_ : rdmap::Delivery::kPlain;
}

size_t EndpointImpl::MaxUlpdu(const mpa::StartOutcome& outcome, const std::optional<mpa::WeftTrailer>& trailer) const {
  if (trailer) return std::clamp<size_t>(trailer->max_ulpdu, kSmallestUlpdu, kLargestUlpdu);
  const size_t segment = std::min(socket_->SegmentSize(), kForeignFpdu);
  return std::max(mpa::MulpduForSegment(segment, outcome.send_markers), kSmallestUlpdu);
}

void EndpointImpl::OnEstablished() {
  {
    std::lock_guard lock(mutex_);
    if (established_told_ || state_ != State::kConnected) return;
    established_told_ = true;
    Tell(established_);
  }
  Deliver();
}

void EndpointImpl::OnDisconnected(bool was_established) {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kConnected) return;
    state_ = State::kClosed;
    qp_.reset();
    if (!established_told_ && was_established) Tell(established_);  // the news of it is still under way on another thread
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
