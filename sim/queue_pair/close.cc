#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "sim/queues/names.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair/internal.h"

// How a connected queue pair's connection ends: by either side's Terminate, by Disconnect(), by errors of its own; and what becomes of the
// work requests then.
namespace weft::sim {
namespace {

constexpr std::chrono::seconds kDrainLimit{5};  // what Disconnect() found posted has this long to go out

// A peer that takes what is in front of our Terminate bit by bit has so long in all; one that takes nothing, so long.
constexpr std::chrono::seconds kTerminateLimit{60}, kStuckLimit{2};

bool IsTooLong(const rdmap::TerminateMessage& why) {
  constexpr uint8_t kUntagged = 2, kMessageTooLong = 5;
  return why.layer == rdmap::TerminateLayer::kDdp && why.error_type == kUntagged && why.error_code == kMessageTooLong;
}

// What the peer's Terminate means for the request that it is about.
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
      return "the key to invalidate is not that of a region without windows, nor of a window of type 2 that this queue pair bound";
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

ibv_wc_status QueuePair::BlameFor(const rdmap::TerminateMessage& terminate, uint64_t blamed) const {
  constexpr uint8_t kOperation = 2, kCatastrophic = 7;
  // RFC 7306 section 8.2: the address of an atomic is not aligned.
  if (terminate.layer == rdmap::TerminateLayer::kRdmap && terminate.error_type == kOperation && terminate.error_code == kCatastrophic &&
      blamed != sends_.posted() && sends_.entry(blamed).request.opcode == rdmap::Opcode::kAtomicRequest) {
    return IBV_WC_REM_INV_REQ_ERR;
  }
  return sim::BlameFor(terminate);
}

void QueuePair::FinishDisconnect() {
  Connection& connection = *connection_;
  if (!connection.closing || connection.fin_sent) return;
  if (connection.channel->empty() && (sends_.retired() >= connection.last_to_send || !connection.channel->may_send())) {
    connection.fin_sent = true;
    connection.channel->EndOutput();
  }
  if (connection.close_timer == 0) {
    connection.close_timer = adapter_.network().RunAt(adapter_.network().Now() + kDrainLimit, [weak = weak_from_this()] {
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
      LogWarning(Format("qp 0x%x: %s terminated the stream: %s", number_, PeerName().c_str(), why.ToString().c_str()));
      if (connection.reliable) {
        const uint64_t blamed = BlamedBy(why);
        return Fail(/*orderly=*/true, BlameFor(why, blamed), blamed);
      }
      upcalls_.push_back(Upcall::kFatal);
      return Fail(/*orderly=*/true, sim::BlameFor(why));
    }
    case rdmap::StreamState::kTerminating: {
      if (connection.stream.terminate_end_position() == 0) Transmit();
      const bool later = connection.stream.terminate_end_position() == 0 && connection.channel->may_send() && !connection.channel->failed();
      const rdmap::TerminateMessage& why = *connection.stream.terminate();
      if (!later && connection.to_itself) return FailByItself(why);
      if (!connection.to_itself) TellOfTermination(why);
      if (!later) return Fail(/*orderly=*/true);
      if (!connection.to_itself) FlushQueues(std::nullopt);
      return FinishTerminateLater(adapter_.network().Now() + kTerminateLimit);
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
    TellPeerOfLocalError();
    return Fail(/*orderly=*/!connection.extended);
  }
  if (local_error_) {
    const SendEntry& entry = sends_.entry(sends_.retired());
    LogWarning(Format("qp 0x%x: work request %llu (%s) cannot be carried out: %s; the queue pair is in error", number_,
                      static_cast<unsigned long long>(entry.id), NameOf(entry.opcode), ExplainLocalError(sends_.retired()).c_str()));
    TellPeerOfLocalError();
    return Fail(/*orderly=*/true, entry.status);
  }
  if (connection.channel->failed()) {
    Receive();
    if (connection_ == nullptr) return;
    if (connection.stream.state() != rdmap::StreamState::kOperational) return CheckStream();
    Lose(/*orderly=*/false);
  }
}

void QueuePair::TellOfTermination(const rdmap::TerminateMessage& why) {
  Connection& connection = *connection_;
  if (std::exchange(connection.termination_told, true)) return;
  LogWarning(Format("qp 0x%x: terminated the stream from %s: %s", number_, PeerName().c_str(), why.ToString().c_str()));
  upcalls_.push_back(sim::BlameFor(why) == IBV_WC_REM_ACCESS_ERR ? Upcall::kAccessError : Upcall::kRequestError);
  if (receives_.taken != receives_.completed() && IsTooLong(why)) CompleteReceive(IBV_WC_LOC_LEN_ERR, nullptr);
  // The memory of requests and receives is the program's again.
  connection.channel->DivertPlacement();
  if (connection.stream.terminate_end_position() == 0) connection.channel->TakeOver(nullptr, SIZE_MAX, CopyWhatIsThere);
  EnterError();
}

void QueuePair::TellPeerOfLocalError() {
  if (!connection_->extended) connection_->stream.Terminate({});  // RDMAP, local catastrophic error
}

std::string QueuePair::ExplainLocalError(uint64_t count) {
  const SendEntry& entry = sends_.entry(count);
  if (entry.status != IBV_WC_LOC_PROT_ERR || entry.opcode == IBV_WR_LOCAL_INV) return LocalErrorText(entry);
  const bool write = entry.opcode == IBV_WR_RDMA_READ || entry.request.opcode == rdmap::Opcode::kAtomicRequest;
  for (int i = 0; i < entry.pieces; ++i) {
    const ibv_sge& element = sends_.elements(count)[i];
    if (element.length == 0) continue;
    const std::string why =
        adapter_.memory().ExplainLocal(*options_.pd, element.lkey, element.addr, element.length, write, write && !roce_);
    if (why.empty()) continue;
    return Format("scatter/gather element %d (lkey 0x%08x, address 0x%llx, %u bytes): %s", i, element.lkey,
                  static_cast<unsigned long long>(element.addr), element.length, why.c_str());
  }
  return "a fault was asked for, or the memory was registered since";
}

void QueuePair::FinishTerminateLater(transport::Time until) {
  // The socket is full: the Terminate, and the answers in front of it, follow when it drains; nothing for a while is the end.
  Connection& connection = *connection_;
  if (connection.close_timer != 0) return;
  connection.close_timer = adapter_.network().RunAt(
      adapter_.network().Now() + kStuckLimit, [weak = weak_from_this(), before = connection.channel->consumed(), until] {
        auto self = weak.lock();
        if (self == nullptr) return;
        EngineLock engine(*self);
        if (self->connection_ == nullptr) return;
        self->connection_->close_timer = 0;
        const bool stuck = self->connection_->channel->consumed() == before;
        if (stuck || self->adapter_.network().Now() >= until) return self->Fail(/*orderly=*/false);
        self->FinishTerminateLater(until);
      });
}

void QueuePair::Fail(bool orderly, std::optional<ibv_wc_status> blame, std::optional<uint64_t> at) {
  CloseConnection(orderly);
  const bool was_in_error = state() == IBV_QPS_ERR;
  if (!was_in_error) SetState(IBV_QPS_ERR);
  FlushQueues(blame, at);
  ForgetRefusals();
  if (!was_in_error && options_.shared_receives) upcalls_.push_back(Upcall::kLastReceive);
}

void QueuePair::EnterError() {
  if (state() == IBV_QPS_ERR) return;
  SetState(IBV_QPS_ERR);
  FlushQueues(std::nullopt);
  ForgetRefusals();
  if (options_.shared_receives) upcalls_.push_back(Upcall::kLastReceive);
}

void QueuePair::CloseConnection(bool orderly) {
  if (connection_ == nullptr) return;
  Connection& connection = *connection_;
  if (connection.close_timer != 0) adapter_.network().Cancel(connection.close_timer);
  if (orderly) {
    if (OwesAcknowledgement() && connection.stream.state() == rdmap::StreamState::kOperational) {
      connection.stream.Acknowledge();
      connection.stream.Transmit(connection.channel->writer());
    }
    // A plain stream's Terminate about an error of our own: nothing goes in front of it.
    const bool says_why = !connection.extended && connection.channel->may_send() && connection.stream.state() == rdmap::StreamState::kTerminating;
    connection.channel->Close([&](llp::UlpduWriter& out) {
      if (says_why) connection.stream.Transmit(out);
    });
  } else {
    connection.channel->Abort();
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
  LogWarning(Format("qp 0x%x: terminated the stream from itself: %s", number_, why.ToString().c_str()));
  if (receives_.taken != receives_.completed() && IsTooLong(why)) CompleteReceive(IBV_WC_LOC_LEN_ERR, nullptr);
  Fail(/*orderly=*/true, BlameFor(why, blamed), blamed);
}

}  // namespace weft::sim
