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

ibv_wc_opcode CompletionOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    default:
      return IBV_WC_SEND;
  }
}

}  // namespace

void QueuePair::EngineLock::Deliver() {
  while (qp_.revocation_ && !qp_.revocation_->begun) qp_.CarryOutRevocation(lock_);
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
      case Upcall::kRevocation:
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
    local_error_ = completion_lost_ = false;
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
    std::lock_guard lock(sends_.post_mutex());
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
  if (!received && !owed && connection_->channel->quiet() && sends_.started == sends_.posted()) return;
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
  int needed = 0;
  switch (access) {
    case rdmap::Access::kRemoteWrite:
    case rdmap::Access::kReadSink:  // on iWARP the sink of a Read is written by the peer (RFC 5040 section 5.1)
      needed = IBV_ACCESS_REMOTE_WRITE;
      break;
    case rdmap::Access::kRemoteRead:
      needed = IBV_ACCESS_REMOTE_READ;
      break;
  }
  if (options_.type == IBV_QPT_XRC_SEND) return rdmap::AccessError::kAccessRights;  // it takes no requests
  const int open = access == rdmap::Access::kReadSink ? needed : static_cast<int>(attributes_.qp_access_flags);
  if ((open & needed) != needed) return rdmap::AccessError::kAccessRights;
  ddp::STag region;
  auto memory = adapter_.memory().ResolveRemote(remote_pd(), stag, offset.value, length, needed, memory_user_, &region);
  if (region != stag) window_uses_[access == rdmap::Access::kRemoteRead] = {stag, region};
  return memory;
}

std::optional<rdmap::ReceiveTarget> QueuePair::TakeReceive() {
  no_receive_ = (faults::Enabled(faults::Kind::kRnr) && InjectNotReady()) || (receives_.taken == receives_.posted() && !TakeShared());
  if (no_receive_) {
    if (connection_->reliable) counters_.rnr.Add(1);
    return std::nullopt;
  }
  const uint64_t count = receives_.taken++;
  if (faults::Enabled(faults::Kind::kCompletion)) [[unlikely]] {
    if (const ibv_wc_status status = InjectReceiveStatus(); status != IBV_WC_SUCCESS) {
      CompleteReceive(status, nullptr);
      return std::nullopt;
    }
  }
  const ReceiveQueue::Entry& entry = receives_.entry(count);
  iovec* memory = receives_.memory();
  size_t pieces = 0;
  uint64_t length = 0;
  for (int i = 0; i < entry.pieces; ++i) {
    const ibv_sge& element = receives_.elements(count)[i];
    if (element.length == 0) continue;
    uint8_t* bytes = adapter_.memory().ResolveLocal(receive_pd(), element.lkey, element.addr, element.length, true, false, memory_user_);
    if (bytes == nullptr) {
      LogWarning(Format("qp 0x%x: receive %llu names memory (lkey 0x%08x, address 0x%llx, %u bytes) that it cannot use: %s", number_,
                        static_cast<unsigned long long>(entry.id), element.lkey, static_cast<unsigned long long>(element.addr),
                        element.length,
                        adapter_.memory().ExplainLocal(receive_pd(), element.lkey, element.addr, element.length, true, false).c_str()));
      CompleteReceive(IBV_WC_LOC_PROT_ERR, nullptr);
      return std::nullopt;
    }
    memory[pieces++] = {bytes, element.length};
    length += element.length;
  }
  return rdmap::ReceiveTarget{{memory, pieces}, length};
}

bool QueuePair::TakeShared() {
  SharedReceiveQueue* const from = options_.xrc ? target_.get() : options_.shared_receives.get();
  if (from == nullptr) return false;
  ibv_recv_wr wr;
  ibv_sge elements[kMaxSge];
  if (!from->Take(&wr, elements) || receives_.Post(wr) != 0) return false;
  if (options_.xrc) receiving_ = target_;
  return true;
}

void QueuePair::Received(const rdmap::ReceivedSend& message) { CompleteReceive(IBV_WC_SUCCESS, &message); }

void QueuePair::CompleteReceive(ibv_wc_status status, const rdmap::ReceivedSend* message) {
  ibv_wc completion{};
  completion.wr_id = receives_.entry(receives_.completed()).id;
  completion.status = status;
  completion.opcode = IBV_WC_RECV;
  completion.qp_num = number_;
  bool solicited = true;
  if (message != nullptr) {
    completion.byte_len = message->length;
    if (message->of_write) completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    if (message->immediate) {
      completion.wc_flags = IBV_WC_WITH_IMM;
      completion.imm_data = htonl(*message->immediate);
    }
    solicited = message->solicited;
    if (message->invalidated) {
      completion.wc_flags = IBV_WC_WITH_INV;
      completion.invalidated_rkey = message->invalidated->value;
    }
  }
  receives_.Complete();
  Push(receiving_ != nullptr ? *receiving_->completions() : *options_.receive_cq, completion, solicited);
}

bool QueuePair::ResolveSend(uint64_t count) {
  SendEntry& entry = sends_.entry(count);
  const bool is_atomic = entry.request.opcode == rdmap::Opcode::kAtomicRequest && entry.opcode != IBV_WR_LOCAL_INV;
  const bool is_read = entry.opcode == IBV_WR_RDMA_READ || is_atomic;
  const bool extended = is_atomic || entry.request.has_immediate;
  if ((is_read && connection_->ord == 0) || (extended && !connection_->extended)) {
    entry.status = IBV_WC_LOC_QP_OP_ERR;
    return false;
  }
  iovec* memory = sends_.memory(count);
  size_t pieces = 0;
  for (int i = 0; i < entry.pieces; ++i) {
    const ibv_sge& element = sends_.elements(count)[i];
    if (is_read && i == 0) {
      entry.request.sink_stag = ddp::STag(element.lkey);
      entry.request.sink_offset = ddp::TaggedOffset(element.addr);
    }
    if (element.length == 0) continue;
    uint8_t* bytes =
        adapter_.memory().ResolveLocal(*options_.pd, element.lkey, element.addr, element.length, is_read, is_read && !roce_, memory_user_);
    if (bytes == nullptr) {
      entry.status = IBV_WC_LOC_PROT_ERR;
      return false;
    }
    memory[pieces++] = {bytes, element.length};
  }
  entry.request.local = {memory, pieces};
  entry.resolved = true;
  return true;
}

rdmap::Request* QueuePair::NextRequest() {
  for (;;) {
    const uint64_t count = sends_.started;
    if (local_error_ || revocation_ || count == sends_.posted()) return nullptr;
    if (roce_ && state() != IBV_QPS_RTS && !connection_->closing) return nullptr;
    if (connection_->closing && count >= connection_->last_to_send) return nullptr;
    SendEntry& entry = sends_.entry(count);
    if ((faults::Enabled(faults::Kind::kCompletion) || entry.asked) && InjectStatus(entry)) [[unlikely]] {
      local_error_ = sends_.retired() == count;
      return nullptr;
    }
    if (entry.opcode == IBV_WR_LOCAL_INV || entry.opcode == IBV_WR_BIND_MW) {
      if (entry.done || (entry.opcode == IBV_WR_BIND_MW ? BindWindow(count) : InvalidateLocally(count))) {
        ++sends_.started;
        RetireSends();
        continue;
      }
    } else if ((entry.resolved && !(entry.request.has_immediate && !connection_->extended)) || ResolveSend(count)) {
      return &entry.request;
    }
    // It fails when everything before it is complete, so that completions stay in order.
    local_error_ = sends_.retired() == count && entry.status != IBV_WC_SUCCESS;
    return nullptr;
  }
}

void QueuePair::Started(rdmap::Request& request) {
  if (TraceEnabled()) {
    const SendEntry& entry = sends_.entry(sends_.started);
    Trace(Format("qp 0x%x: work request %llu begins: %s, %u bytes", number_, static_cast<unsigned long long>(entry.id),
                 NameOf(entry.opcode), request.length));
  }
  ++sends_.started;
}

namespace {
SendEntry& EntryOf(rdmap::Request& request) {
  static_assert(std::is_standard_layout_v<SendEntry> && offsetof(SendEntry, request) == 0);
  return reinterpret_cast<SendEntry&>(request);
}
}  // namespace

void QueuePair::Sent(rdmap::Request& request) {
  EntryOf(request).done = true;
  RetireSends();
}

void QueuePair::ReadDone(rdmap::Request& request) {
  EntryOf(request).done = true;
  RetireSends();
}

void QueuePair::RetireSends() {
  while (sends_.retired() != sends_.started) {
    SendEntry& entry = sends_.entry(sends_.retired());
    if (!entry.done) return;
    CompleteSend(entry);
  }
  if (!drain_told_) TellOfDrain();
}

void QueuePair::CompleteSend(SendEntry& entry) {
  const bool tell = entry.signaled;
  ibv_wc completion;
  if (tell) {
    completion = ibv_wc{};
    completion.wr_id = entry.id;
    completion.status = entry.status;
    completion.opcode = CompletionOpcode(entry.opcode);
    completion.byte_len = entry.request.length;
    completion.qp_num = number_;
  }
  sends_.Retire();  // its slot is free before the program can see the completion
  if (tell) Push(*options_.send_cq, completion, false);
}

void QueuePair::Push(CompletionQueue& cq, const ibv_wc& completion, bool solicited) {
  if (TraceEnabled()) {
    Trace(Format("qp 0x%x: completion of work request %llu: %s, %s, %u bytes", number_,
                 static_cast<unsigned long long>(completion.wr_id), NameOf(completion.opcode), NameOf(completion.status),
                 completion.byte_len));
  }
  if (completion.status != IBV_WC_SUCCESS) counters_.errors.Add(1);
  if (!cq.Push(completion, solicited)) completion_lost_ = true;
}

}  // namespace weft::sim
