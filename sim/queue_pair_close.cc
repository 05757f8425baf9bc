#include "base/iovec_length.h"
#include "base/log.h"
#include "sim/lingering_close.h"
#include "sim/queue_pair.h"
#include "sim/queue_pair_internal.h"
#include "sim/rnic.h"

// How a connected queue pair's connection ends: by either side's Terminate, by Disconnect(), by errors of its own; and what becomes of the
// work requests then.
namespace weft::sim {
namespace {

constexpr std::chrono::seconds kDrainLimit{5};  // what Disconnect() found posted has this long to go out

// What the peer's Terminate means for the oldest request that is not complete.
ibv_wc_status BlameFor(const rdmap::TerminateMessage& terminate) {
  constexpr uint8_t kRdmapProtection = 1, kDdpTagged = 1, kDdpUntagged = 2, kDdpInvalidQueue = 1, kDdpMessageTooLong = 5;
  switch (terminate.layer) {
    case rdmap::TerminateLayer::kRdmap:
      return terminate.error_type == kRdmapProtection ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_OP_ERR;
    case rdmap::TerminateLayer::kDdp:
      if (terminate.error_type == kDdpTagged) return IBV_WC_REM_ACCESS_ERR;
      if (terminate.error_type == kDdpUntagged && terminate.error_code == kDdpMessageTooLong) return IBV_WC_REM_INV_REQ_ERR;
      if (terminate.error_type == kDdpUntagged && terminate.error_code == kDdpInvalidQueue) return IBV_WC_REM_INV_REQ_ERR;  // XRC's
      return IBV_WC_REM_OP_ERR;
    case rdmap::TerminateLayer::kLlp:
      return IBV_WC_REM_OP_ERR;
  }
  return IBV_WC_REM_OP_ERR;
}

const char* LocalErrorText(const SendEntry& entry) {
  switch (entry.status) {
    case IBV_WC_LOC_PROT_ERR:
      return "a scatter/gather element is not in a memory region of this protection domain with the rights it needs";
    case IBV_WC_MW_BIND_ERR:
      return "the memory window is bound already or of another protection domain, or the range is not in a region with "
             "IBV_ACCESS_MW_BIND and the rights asked for";
    case IBV_WC_LOC_QP_OP_ERR:
      return entry.opcode == IBV_WR_RDMA_READ
                 ? "the connection allows no RDMA Read (ORD is 0)"
                 : "the peer is no Weft in the roce persona, and plain iWARP has no immediate data and no atomics";
    default:
      return "a fault was asked for";
  }
}

}  // namespace

void QueuePair::FinishDisconnect() {
  Connection& connection = *connection_;
  if (!connection.closing || connection.fin_sent) return;
  const bool drained = sends_.retired() >= connection.last_to_send && connection.sender.empty();
  if ((drained || !connection.may_transmit) && connection.prologue.empty()) {
    connection.fin_sent = true;
    connection.socket->ShutdownWrite();
  }
  if (connection.close_timer == 0) {
    connection.close_timer = rnic_.network().RunAt(rnic_.network().Now() + kDrainLimit, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (self == nullptr) return;
      EngineLock engine(*self);
      if (self->connection_ != nullptr && self->connection_->closing) self->Fail(/*orderly=*/false);
    });
  }
}

void QueuePair::CheckStream() {
  if (connection_ == nullptr) return;
  Connection& connection = *connection_;
  switch (connection.stream.state()) {
    case rdmap::StreamState::kOperational:
      break;
    case rdmap::StreamState::kTerminated: {
      const rdmap::TerminateMessage& why = *connection.stream.terminate();
      LogWarning(Format("qp 0x%x: %s terminated the stream: %s", number_,
                        connection.socket->PeerAddress().ToString().c_str(), why.ToString().c_str()));
      if (connection.reliable) {
        const uint64_t blamed = BlamedBy(why);
        return Fail(/*orderly=*/true, BlameFor(why), blamed);
      }
      upcalls_.push_back(Upcall::kFatal);
      return Fail(/*orderly=*/true, BlameFor(why));
    }
    case rdmap::StreamState::kTerminating: {
      if (connection.stream.terminate_end_position() == 0) Transmit();
      if (connection.stream.terminate_end_position() == 0 && connection.may_transmit && !connection.write_failed) {
        FinishTerminateLater();
        return;
      }
      const rdmap::TerminateMessage& why = *connection.stream.terminate();
      LogWarning(Format("qp 0x%x: terminated the stream from %s: %s", number_,
                        connection.socket->PeerAddress().ToString().c_str(), why.ToString().c_str()));
      if (connection.to_itself) return FailByItself(why);
      const bool protection = BlameFor(why) == IBV_WC_REM_ACCESS_ERR;
      upcalls_.push_back(protection ? Upcall::kAccessError : Upcall::kRequestError);
      if (receives_.taken != receives_.completed() && BlameFor(why) == IBV_WC_REM_INV_REQ_ERR) {
        CompleteReceive(IBV_WC_LOC_LEN_ERR, nullptr);
      }
      return Fail(/*orderly=*/true);
    }
  }
  // Reads and atomics before it may not have been answered yet; nothing behind it goes out meanwhile.
  if (refusals_exhausted_ && sends_.retired() == refused_) {
    LogWarning(Format("qp 0x%x: the peer still has no receive for work request %llu after %u tries; the queue pair is in error",
                      number_, static_cast<unsigned long long>(sends_.entry(refused_).id), refusals_));
    return Fail(/*orderly=*/true, IBV_WC_RNR_RETRY_EXC_ERR, refused_);
  }
  if (completion_lost_) {
    upcalls_.push_back(Upcall::kFatal);
    return Fail(/*orderly=*/false);
  }
  if (local_error_) {
    SendEntry& entry = sends_.entry(sends_.retired());
    LogWarning(Format("qp 0x%x: work request %llu cannot be carried out: %s; the queue pair is in error", number_,
                      static_cast<unsigned long long>(entry.id),
                      LocalErrorText(entry)));
    return Fail(/*orderly=*/true, entry.status);
  }
  if (connection.write_failed) {
    Receive();
    if (connection_ == nullptr) return;
    if (connection.stream.state() != rdmap::StreamState::kOperational) return CheckStream();
    Lose(/*orderly=*/false);
  }
}

void QueuePair::FinishTerminateLater() {
  // The socket is full: the Terminate, and the answers in front of it, follow when it drains; nothing for the linger limit is the end.
  Connection& connection = *connection_;
  if (connection.close_timer != 0) return;
  connection.close_timer = rnic_.network().RunAt(
      rnic_.network().Now() + kLingerLimit, [weak = weak_from_this(), before = connection.sender.consumed()] {
        auto self = weak.lock();
        if (self == nullptr) return;
        EngineLock engine(*self);
        if (self->connection_ == nullptr) return;
        self->connection_->close_timer = 0;
        if (self->connection_->sender.consumed() == before) return self->Fail(/*orderly=*/false);
        self->FinishTerminateLater();
      });
}

void QueuePair::Fail(bool orderly, std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) {
  CloseConnection(orderly);
  const bool was_in_error = state() == IBV_QPS_ERR;
  if (!was_in_error) state_.store(IBV_QPS_ERR, std::memory_order_seq_cst);
  FlushQueues(blame, at);
  ForgetRefusals();
  if (!was_in_error && options_.shared_receives) upcalls_.push_back(Upcall::kLastReceive);
}

void QueuePair::CloseConnection(bool orderly) {
  if (connection_ == nullptr) return;
  Connection& connection = *connection_;
  if (connection.watch != 0) rnic_.network().Unwatch(connection.watch);
  if (connection.close_timer != 0) rnic_.network().Cancel(connection.close_timer);
  if (orderly && !connection.write_failed) {
    if (OwesAcknowledgement() && connection.stream.state() == rdmap::StreamState::kOperational) {
      connection.stream.Acknowledge();
      connection.stream.Transmit(connection.sender);
    }
    // The rest of an FPDU that went out in part has to follow, or the peer would see garbage instead of an end.
    std::vector<uint8_t> rest = std::move(connection.prologue);
    for (auto pending = connection.sender.Pending(); !pending.empty(); pending = connection.sender.Pending()) {
      for (const iovec& piece : pending) {
        const auto* bytes = static_cast<const uint8_t*>(piece.iov_base);
        rest.insert(rest.end(), bytes, bytes + piece.iov_len);
      }
      connection.sender.Consume(TotalLength(pending));
    }
    if (connection.faulty != nullptr) connection.socket = connection.faulty->Release(rest);
    if (connection.socket != nullptr) CloseLingering(rnic_.network(), std::move(connection.socket), std::move(rest));
  } else {
    connection.socket->Abort();
  }
  upcalls_.push_back(connection.established_told ? Upcall::kDisconnected : Upcall::kNeverEstablished);
  connection_.reset();
}

void QueuePair::FlushQueues(std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) {
  const uint64_t blamed = at.value_or(sends_.retired());
  while (sends_.retired() != sends_.posted()) {
    SendEntry& entry = sends_.entry(sends_.retired());
    entry.status = sends_.retired() == blamed ? blame.value_or(IBV_WC_WR_FLUSH_ERR) : IBV_WC_WR_FLUSH_ERR;
    entry.signaled = true;
    CompleteSend(entry);
  }
  sends_.started = sends_.retired();
  while (receives_.completed() != receives_.posted()) {
    if (receives_.taken == receives_.completed()) ++receives_.taken;
    CompleteReceive(IBV_WC_WR_FLUSH_ERR, nullptr);
  }
}

void QueuePair::FailByItself(const rdmap::TerminateMessage& why) {
  // What it has from itself is done, although the acknowledgement did not come back.
  const uint32_t received = connection_->stream.received();
  for (uint64_t count = sends_.retired(); count != sends_.started; ++count) {
    SendEntry& entry = sends_.entry(count);
    const bool answered =
        entry.request.opcode == rdmap::Opcode::kReadRequest || entry.request.opcode == rdmap::Opcode::kAtomicRequest;
    if (!answered && static_cast<int32_t>(entry.request.sequence - received) <= 0) entry.done = true;
  }
  RetireSends();
  const uint64_t blamed = BlamedBy(why);
  if (receives_.taken != receives_.completed() && BlameFor(why) == IBV_WC_REM_INV_REQ_ERR) CompleteReceive(IBV_WC_LOC_LEN_ERR, nullptr);
  Fail(/*orderly=*/true, BlameFor(why), blamed);
}

}  // namespace weft::sim
