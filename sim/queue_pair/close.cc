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

}  // namespace

void QueuePair::FinishDisconnect() {
  Connection& connection = *connection_;
  if (!connection.closing || connection.fin_sent) return;
  if (connection.channel->empty() && (sends().retired() >= connection.last_to_send || !connection.channel->may_send())) {
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
        const uint64_t blamed = requester_.BlamedBy(why, connection.stream.acknowledged() + 1);
        return Fail(/*orderly=*/true, requester_.BlameFor(why, blamed), blamed);
      }
      upcalls_.push_back(Upcall::kFatal);
      return Fail(/*orderly=*/true, BlameFor(why));
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
  if (refusals_exhausted_ && sends().retired() == refused_) {
    LogWarning(Format("qp 0x%x: the peer still has no receive for work request %llu after %u tries; the queue pair is in error",
                      number_, static_cast<unsigned long long>(sends().entry(refused_).id), refusals_));
    return Fail(/*orderly=*/true, IBV_WC_RNR_RETRY_EXC_ERR, refused_);
  }
  if (completer_.lost()) {
    upcalls_.push_back(Upcall::kFatal);
    TellPeerOfLocalError();
    return Fail(/*orderly=*/!connection.extended);
  }
  if (requester_.failed()) {
    const SendEntry& entry = requester_.oldest();
    LogWarning(Format("qp 0x%x: work request %llu (%s) cannot be carried out: %s; the queue pair is in error", number_,
                      static_cast<unsigned long long>(entry.id), NameOf(entry.opcode), requester_.Explain().c_str()));
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
  upcalls_.push_back(BlameFor(why) == IBV_WC_REM_ACCESS_ERR ? Upcall::kAccessError : Upcall::kRequestError);
  if (responder_.filling() && IsTooLong(why)) responder_.Fail(IBV_WC_LOC_LEN_ERR);
  // The memory of requests and receives is the program's again.
  connection.channel->DivertPlacement();
  if (connection.stream.terminate_end_position() == 0) connection.channel->TakeOver(nullptr, SIZE_MAX, CopyWhatIsThere);
  EnterError();
}

void QueuePair::TellPeerOfLocalError() {
  if (!connection_->extended) connection_->stream.Terminate({});  // RDMAP, local catastrophic error
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
  requester_.Flush(blame, at);
  responder_.Flush();
}

void QueuePair::FailByItself(const rdmap::TerminateMessage& why) {
  // What it has from itself is done, although the acknowledgement did not come back.
  const uint32_t received = connection_->stream.received();
  requester_.AcceptUpTo(received);
  const uint64_t blamed = requester_.BlamedBy(why, received + 1);
  LogWarning(Format("qp 0x%x: terminated the stream from itself: %s", number_, why.ToString().c_str()));
  if (responder_.filling() && IsTooLong(why)) responder_.Fail(IBV_WC_LOC_LEN_ERR);
  Fail(/*orderly=*/true, requester_.BlameFor(why, blamed), blamed);
}

}  // namespace weft::sim
