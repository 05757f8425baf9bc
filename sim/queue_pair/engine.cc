#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "faults/injector.h"
#include "sim/device/limits.h"
#include "sim/queues/names.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair/internal.h"

// The engine of a connected queue pair: moves bytes between socket and protocol, completes work.
namespace weft::sim {
namespace {

constexpr unsigned kMostReadsPerStep = 32;               // then others get their turn
constexpr int kPollsForMessage = 64;                // in vain, for the rest of a message that has begun to come
constexpr uint64_t kMostOfMessage = 256 * 1024;     // ... and so many bytes of it

}  // namespace

void QueuePair::EngineLock::Deliver() {
  while (qp_.requester_.revocation_waits()) qp_.CarryOutRevocation(lock_);
  std::vector<Upcall> upcalls = std::exchange(qp_.upcalls_, {});
  std::shared_ptr<ConnectionObserver> observer = qp_.observer_;
  lock_.unlock();
  std::lock_guard delivering(qp_.upcall_mutex_);
  for (Upcall upcall : upcalls) {
    ibv_event_type type = IBV_EVENT_QP_FATAL;
    switch (upcall) {
      case Upcall::kEstablished:
        if (observer) observer->OnEstablished();
        continue;
      case Upcall::kDisconnected:
        if (observer) observer->OnDisconnected(/*was_established=*/true);
        continue;
      case Upcall::kNeverEstablished:
        if (observer) observer->OnDisconnected(/*was_established=*/false);
        continue;
      case Upcall::kFatal:
        break;
      case Upcall::kAccessError:
        type = IBV_EVENT_QP_ACCESS_ERR;
        break;
      case Upcall::kRequestError:
        type = IBV_EVENT_QP_REQ_ERR;
        break;
      case Upcall::kLastReceive:
        type = IBV_EVENT_QP_LAST_WQE_REACHED;
        break;
      case Upcall::kCommunication:
        type = IBV_EVENT_COMM_EST;
        break;
      case Upcall::kDrained:
        type = IBV_EVENT_SQ_DRAINED;
        break;
    }
    if (TraceEnabled()) Trace(Format("qp 0x%x: asynchronous event %s", qp_.number_, NameOf(type)));
    if (!qp_.destroyed_.load() && qp_.options_.async) qp_.options_.async->OnAsyncEvent(type, qp_.options_.owner);
  }
}

int QueuePair::Establish(std::unique_ptr<llp::Channel> channel, EstablishOptions options) {
  transport::WatchId watch;
  {
    EngineLock engine(*this);
    if (destroyed_ || connection_ != nullptr || options.dialled != dialled_ || lost_) return EINVAL;
    const ibv_qp_state state = this->state();
    if (options.dialled ? state != IBV_QPS_RTR && state != IBV_QPS_RTS && state != IBV_QPS_SQD
                        : state != IBV_QPS_INIT && state != IBV_QPS_RTR) {
      return EINVAL;
    }
    const llp::Outcome& outcome = options.outcome;
    const bool expects_rtr = !options.initiator && outcome.rtr != llp::Rtr::kNone;
    connection_ = std::make_unique<Connection>(std::move(channel),
                                               rdmap::StreamOptions{.ird = outcome.ird,
                                                                    .ord = outcome.ord,
                                                                    .expected_rtr = expects_rtr ? outcome.rtr : llp::Rtr::kNone,
                                                                    .delivery = options.delivery,
                                                                    .scatter_reads = roce_,
                                                                    .targeted = options_.xrc != nullptr},
                                               static_cast<rdmap::Host&>(*this));
    Connection& connection = *connection_;
    connection.ird = outcome.ird;
    connection.ord = outcome.ord;
    last_peer_ = connection.channel->PeerAddress();
    connection.channel->Annotate(CaptureComment());
    connection.extended = options.delivery != rdmap::Delivery::kPlain;
    connection.reliable = options.delivery == rdmap::Delivery::kReliable;
    connection.established_told = !expects_rtr;
    connection.to_itself = options.to_itself;
    observer_ = std::move(options.observer);
    requester_.ForgetFailure();
    completer_.Clear();
    connection.channel->Start(connection.stream, std::shared_ptr<llp::ChannelUser>(shared_from_this(), this));
    if (options.initiator && outcome.rtr != llp::Rtr::kNone) connection.stream.SendRtr(outcome.rtr);
    if (options.initiator && outcome.rtr == llp::Rtr::kNone) connection.stream.Greet();
    if (!options.dialled) {
      // As the kernel's connection manager sets them for its queue pairs, but for a receiver timer (code 12: 0.64 ms) that suits a
      // software RNIC.
      attributes_.rnr_retry = options.rnr_retry;
      attributes_.retry_cnt = options.retry_count;
      attributes_.timeout = options.ack_timeout;
      attributes_.min_rnr_timer = 12;
      SetState(IBV_QPS_RTS);
    }
    connection.stream.SetReceiverTimer(attributes_.min_rnr_timer);
    connection.watch = connection.channel->Watch(std::shared_ptr<transport::ReadyHandler>(shared_from_this(), this));
    watch = connection.watch;
    if (TraceEnabled()) {
      Trace(Format("qp 0x%x connected: %s, peer %s, IRD %u, ORD %u, %s", number_, options.initiator ? "initiator" : "responder",
                   last_peer_.ToString().c_str(), outcome.ird, outcome.ord, connection.channel->Describe().c_str()));
    }
    Transmit();
    CheckStream();
    if (connection_ != nullptr) connection_->channel->UpdateInterest();
    WatchProgress();
  }
  std::lock_guard lock(attach_mutex_);
  if (destroyed_) return 0;  // meanwhile: nobody would detach it
  options_.send_cq->Attach(shared_from_this(), watch, &errands_[0]);
  if (options_.receive_cq != options_.send_cq) options_.receive_cq->Attach(shared_from_this(), watch, &errands_[1]);
  return 0;
}

void QueuePair::OnWake() {
  EngineLock engine(*this);
  if (connection_ == nullptr) return;
  if (connection_->channel->ProbeIsDue() && !connection_->closing) {
    connection_->stream.SendRtr(llp::Rtr::kWrite);
    Transmit();
    CheckStream();
    return;
  }
  Step(/*eager=*/true);
  if (connection_ != nullptr) connection_->channel->UpdateInterest();
}

void QueuePair::OnReady(transport::Interest) {
  EngineLock engine(*this);
  if (connection_ == nullptr) return;
  Step(/*eager=*/true);
}

void QueuePair::DriveInline(bool spinning) {
  EngineLock engine(*this, std::try_to_lock);
  if (!engine.owns_lock() || connection_ == nullptr) return;
  StepForPoll(spinning, /*eager=*/false);
  if (spinning && connection_ != nullptr) network().Lend(connection_->watch);
}

void QueuePair::OnDriven(transport::Interest, bool spinning) {
  EngineLock engine(*this, std::try_to_lock);
  if (!engine.owns_lock() || connection_ == nullptr) return;
  // What the program polls of XRC's is the queue of the shared receives, which has no place for an errand of ours.
  StepForPoll(spinning, /*eager=*/options_.xrc != nullptr);
}

void QueuePair::StepForPoll(bool spinning, bool eager) {
  const uint64_t before = counters_.bytes_received.value();
  Step(eager);
  if (spinning && counters_.bytes_received.value() != before) ReceiveRestOfMessage();
}

// A program that finds a completion may look at its memory next, for what comes behind it, and poll no more meanwhile, while the progress
// thread trusts it to: ib_write_lat does. Only right after some of it came, and no more than so much in one poll: a peer that stops in the
// middle, or sends gigabytes, does not hold the program.
void QueuePair::ReceiveRestOfMessage() {
  const auto is_open = [this] {
    return connection_ != nullptr && (connection_->channel->in_ulpdu() || connection_->stream.message_open());
  };
  uint64_t received = counters_.bytes_received.value();
  const uint64_t enough = received + kMostOfMessage;
  for (int in_vain = 0; is_open() && in_vain < kPollsForMessage && received < enough;) {
    Step(/*eager=*/false);
    const uint64_t before = std::exchange(received, counters_.bytes_received.value());
    in_vain = received == before ? in_vain + 1 : 0;
  }
}

void QueuePair::FlushDeferred() {
  if (!batching_.pending()) return;
  {
    std::lock_guard lock(sends().post_mutex());
    batching_.Clear();
  }
  Ring();
}

bool QueuePair::AddErrand() {
  const bool with_sends = options_.send_cq->takes_errands();
  const bool with_receives = options_.receive_cq != options_.send_cq && options_.receive_cq->takes_errands();
  if (with_sends) options_.send_cq->AddErrand(errands_[0]);
  if (with_receives) options_.receive_cq->AddErrand(errands_[1]);
  return with_sends || with_receives;
}

bool QueuePair::RunErrand() {
  FlushDeferred();
  EngineLock engine(*this, std::try_to_lock);
  if (!engine.owns_lock()) return false;
  if (!AcknowledgementWanted()) return true;
  if (connection_->stream.received() != errand_received_) {
    AcknowledgeLater();  // the program has just got more to answer
  } else {
    connection_->stream.Acknowledge();
  }
  Transmit();
  CheckStream();
  WatchProgress();
  return true;
}

transport::Network& QueuePair::network() const { return adapter_.network(); }

void QueuePair::Step(bool eager) {
  const bool owed = AcknowledgementWanted();
  const bool received = Receive();
  // The round of a spinning program that finds nothing ends here. One that is still told of room to write, since a post took what there was,
  // says so first.
  if (!received && !owed && connection_->channel->quiet() && sends().started == sends().posted()) return;
  if (connection_ == nullptr) return;
  if (OwesAcknowledgement()) {
    if (AcknowledgementWanted() && (eager || (owed && !received))) {
      connection_->stream.Acknowledge();
    } else {
      AcknowledgeLater();
    }
  }
  Transmit();
  CheckStream();
  if (connection_ != nullptr) connection_->channel->UpdateInterest();
  WatchProgress();
}

bool QueuePair::Receive() {
  Connection& connection = *connection_;
  const llp::Received received = connection.channel->Receive(kMostReadsPerStep);
  if (received.bytes != 0) {
    counters_.bytes_received.Add(received.bytes);
    if (dialled_ && !std::exchange(connection.communication_told, true) && state() == IBV_QPS_RTR) {
      upcalls_.push_back(Upcall::kCommunication);
    }
  }
  if (!connection.established_told && connection.stream.RtrReceived()) {
    connection.established_told = true;
    upcalls_.push_back(Upcall::kEstablished);
  }
  switch (received.kind) {
    case llp::Received::Kind::kNothing:
      return false;
    case llp::Received::Kind::kSome:
      return true;
    case llp::Received::Kind::kStopped:
      connection.stream.OnLowerLayerError(received.broken);
      return true;  // CheckStream() sees why
    case llp::Received::Kind::kEnded:
      if (connection.stream.state() == rdmap::StreamState::kTerminating) return true;  // it still has our Terminate to read
      if (connection.channel->in_ulpdu()) {
        LogWarning(Format("qp 0x%x: %s closed the connection in the middle of a frame; the queue pair is in error", number_,
                          PeerName().c_str()));
      } else if (TraceEnabled()) {
        Trace(Format("qp 0x%x: the peer closed the connection", number_));
      }
      Lose(/*orderly=*/true);
      return true;
    case llp::Received::Kind::kFailed:
      LogWarning(Format("qp 0x%x: lost the connection to %s: %s; the queue pair is in error", number_,
                        PeerName().c_str(), std::strerror(received.error)));
      Lose(/*orderly=*/false);
      return true;
  }
  return true;
}

void QueuePair::Transmit() {
  Connection& connection = *connection_;
  llp::Channel& channel = *connection.channel;
  if (!channel.ReadyToSend()) return;
  if (connection.closing && OwesAcknowledgement()) connection.stream.Acknowledge();  // the last occasion
  for (;;) {
    connection.stream.Transmit(channel.writer());
    const llp::Flushed flushed = channel.Flush();
    if (flushed.kind == llp::Flushed::Kind::kEmpty) break;
    // What the peer sent before it went away (a Terminate, often) may still be readable; Receive() finds the end after it.
    if (flushed.kind == llp::Flushed::Kind::kFailed) return;
    if (flushed.bytes != 0) {
      ++progress_;
      counters_.bytes_sent.Add(flushed.bytes);
      connection.stream.OnTransmitted(channel.consumed());
    }
    if (flushed.kind == llp::Flushed::Kind::kBlocked) break;
  }
  if (connection.closing) FinishDisconnect();
}

// --- rdmap::Host -------------------------------------------------------------------------------------------------------------

Result<uint8_t*, rdmap::AccessError> QueuePair::Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length,
                                                        rdmap::Access access) {
  return responder_.Resolve(stag, offset, length, access, static_cast<int>(attributes_.qp_access_flags));
}

Result<uint64_t, rdmap::AccessError> QueuePair::Atomic(ddp::STag stag, ddp::TaggedOffset offset,
                                                       const rdmap::AtomicOperation& operation) {
  return responder_.Atomic(stag, offset, operation, static_cast<int>(attributes_.qp_access_flags));
}

std::optional<rdmap::ReceiveTarget> QueuePair::TakeReceive() {
  auto target = responder_.TakeReceive(last_peer_);
  if (responder_.exhausted() && connection_->reliable) counters_.rnr.Add(1);
  return target;
}

rdmap::Request* QueuePair::NextRequest() {
  uint64_t limit = sends().posted();
  if (connection_->closing) {
    limit = connection_->last_to_send;
  } else if (roce_ && state() != IBV_QPS_RTS) {
    limit = 0;
  }
  rdmap::Request* const next = requester_.Next({.reads = connection_->ord != 0, .extended = connection_->extended}, limit, last_peer_);
  TellOfDrain();
  return next;
}

void QueuePair::Sent(rdmap::Request& request) {
  requester_.Done(request);
  TellOfDrain();
}

void QueuePair::ReadDone(rdmap::Request& request) { Sent(request); }

}  // namespace weft::sim
