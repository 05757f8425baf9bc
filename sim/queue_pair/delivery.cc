#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "sim/queues/names.h"
#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair/internal.h"

// What the RoCE persona adds to the engine between two Weft ends (rdmap/delivery.h): acknowledgements, waiting for the peer's
// receives, giving up on a peer that does not answer, atomics.
namespace weft::sim {
namespace {

// A program that polls usually answers soon, and the acknowledgement goes with its answer; otherwise at the next poll that finds
// nothing, and at the latest so long after.
constexpr std::chrono::microseconds kAcknowledgeAfter{200};
// A program that always answers in time makes every look of the timer a waste, and takes the thread that looks from a processor.
constexpr std::chrono::milliseconds kLongestAcknowledgeTick{1};
// Requests that a peer gets acknowledged in any case, so that its send queue does not run dry.
constexpr uint32_t kMostOwed = 16;
// What nobody waits for goes along with what somebody does, is gathered, or goes so long after: the peer watches for progress.
constexpr std::chrono::milliseconds kAcknowledgeUnwantedAfter{20};
constexpr uint32_t kMostUnwantedOwed = 64;

// Hardware answers within microseconds, a process on a busy machine may not: whatever `timeout` and `retry_cnt` say, a peer has so
// long.
constexpr std::chrono::seconds kShortestRetryLimit{3};
// A peer that talks but answers nothing has so many times as long: what it says now was under way, or behind other bytes, when it could
// not know of our request yet.
constexpr unsigned kMostPostponements = 7;
// A peer that is known to be gone: the adapter would not know, and try again as long as it was told to. Programs end meanwhile whose peers
// ended before them, with requests under way that nobody waits for. No longer than this, though.
constexpr std::chrono::milliseconds kLongestGoneLimit{500};

// ibv_modify_qp(3), min_rnr_timer: the waits of the InfiniBand specification, volume 1, table 45, in units of 10 us.
constexpr std::array<uint32_t, 32> kReceiverTimers = {65536, 1,   2,   3,   4,   6,   8,    12,   16,   24,   32,
                                                      48,    64,  96,  128, 192, 256, 384,  512,  768,  1024, 1536,
                                                      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

}  // namespace

bool QueuePair::OwesAcknowledgement() const { return connection_ != nullptr && connection_->stream.unacknowledged() != 0; }

bool QueuePair::AcknowledgementWanted() const { return connection_ != nullptr && connection_->stream.acknowledgement_wanted(); }

void QueuePair::AcknowledgeLater() {
  const bool wanted = AcknowledgementWanted();
  if (connection_->stream.unacknowledged() >= (wanted ? kMostOwed : kMostUnwantedOwed)) {
    connection_->stream.Acknowledge();
    return;
  }
  if (wanted) {
    errand_received_ = connection_->stream.received();
    if (AddErrand()) return;
  }
  if (!acknowledgement_timers_[wanted].armed) ArmAcknowledgementTimer(wanted);
}

void QueuePair::ArmAcknowledgementTimer(bool wanted) {
  AcknowledgementTimer& timer = acknowledgement_timers_[wanted];
  const transport::Duration shortest = wanted ? transport::Duration(kAcknowledgeAfter) : kAcknowledgeUnwantedAfter;
  timer.after = timer.armed ? std::max(shortest, std::min<transport::Duration>(2 * timer.after, kLongestAcknowledgeTick)) : shortest;
  timer.armed = true;
  timer.received = connection_->stream.received();
  RunAcknowledgementTimer(wanted, timer.after);
}

void QueuePair::RunAcknowledgementTimer(bool wanted, transport::Duration after) {
  adapter_.network().RunAt(adapter_.network().Now() + after, [weak = weak_from_this(), wanted] {
    if (auto self = weak.lock()) self->OnAcknowledgementTimer(wanted);
  });
}

void QueuePair::OnAcknowledgementTimer(bool wanted) {
  EngineLock engine(*this, std::try_to_lock);
  if (!engine.owns_lock()) return RunAcknowledgementTimer(wanted, kLongestAcknowledgeTick);  // somebody drives it; do not stand in its way
  AcknowledgementTimer& timer = acknowledgement_timers_[wanted];
  if (connection_ == nullptr || !connection_->reliable) {
    timer.armed = false;
    return;
  }
  const uint32_t received_since = connection_->stream.received() - timer.received;
  if (connection_->stream.unacknowledged() > received_since) {
    timer.armed = false;
    connection_->stream.Acknowledge();
    Transmit();
    CheckStream();
  } else if (received_since != 0) {
    ArmAcknowledgementTimer(wanted);  // all that was owed then went along with something: so may what is owed now
  } else {
    timer.armed = false;
  }
}

void QueuePair::OnExit() {
  std::unique_lock engine(engine_mutex_, std::try_to_lock);
  if (engine.owns_lock()) AcceptWhatCame();
}

void QueuePair::AcceptWhatCame() {
  if (connection_ == nullptr || !connection_->reliable) return;
  Receive();
  if (!OwesAcknowledgement()) return;
  connection_->stream.Acknowledge();
  Transmit();
}

// --- receiver not ready ---

void QueuePair::ReceiverNotReady(rdmap::Request& request, uint8_t timer) {
  const uint64_t count = requester_.CountOf(request);
  refusals_ = count == refused_ ? refusals_ + 1 : 1;
  refused_ = count;
  counters_.rnr.Add(1);
  const uint64_t dropped = std::max<uint64_t>(1, requester_.Rewind(count));  // it and what followed it
  if (TraceEnabled()) {
    Trace(Format("qp 0x%x: the peer has no receive for work request %llu (%u)", number_,
                 static_cast<unsigned long long>(sends().entry(count).id), refusals_));
  }
  constexpr uint8_t kForEver = 7;
  if (attributes_.rnr_retry != kForEver && refusals_ > attributes_.rnr_retry) {
    refusals_exhausted_ = true;  // CheckStream() sees it
    return;
  }
  counters_.retries.Add(dropped);
  const auto wait = std::chrono::microseconds(10) * kReceiverTimers[timer % kReceiverTimers.size()];
  refusal_timer_ = adapter_.network().RunAt(adapter_.network().Now() + wait, [weak = weak_from_this(), of = connection_.get()] {
    auto self = weak.lock();
    if (self == nullptr) return;
    EngineLock engine(*self);
    if (self->connection_.get() != of || of == nullptr) return;
    self->refusal_timer_ = 0;
    of->stream.Resume();
    self->Transmit();
    self->CheckStream();
  });
}

void QueuePair::ForgetRefusals() {
  if (refusal_timer_ != 0) adapter_.network().Cancel(std::exchange(refusal_timer_, 0));
  if (retry_timer_ != 0) adapter_.network().Cancel(std::exchange(retry_timer_, 0));
  refused_ = UINT64_MAX;
  refusals_ = 0;
  refusals_exhausted_ = false;
}

// --- a peer that does not answer ---

transport::Duration QueuePair::RetryLimit() const {
  if (attributes_.timeout == 0) return lost_ ? kLongestGoneLimit : transport::Duration{};  // for ever
  const auto once = std::chrono::nanoseconds(4096) * (int64_t{1} << attributes_.timeout);
  const transport::Duration all = once * (attributes_.retry_cnt + 1);
  return lost_ ? std::min<transport::Duration>(all, kLongestGoneLimit) : std::max<transport::Duration>(all, kShortestRetryLimit);
}

uint64_t QueuePair::Progress() const { return progress_ + (connection_ != nullptr ? connection_->stream.answers() : 0); }

void QueuePair::WatchProgress() {
  if (retry_timer_ != 0 || !roce_ || requester_.empty() || state() != IBV_QPS_RTS) return;
  if (connection_ != nullptr && !connection_->reliable) return;
  const transport::Duration limit = RetryLimit();
  if (limit == transport::Duration{}) return;
  auto look = [weak = weak_from_this(), before = Progress(), heard = counters_.bytes_received.value()] {
    auto self = weak.lock();
    if (self == nullptr) return;
    EngineLock engine(*self);
    self->retry_timer_ = 0;
    const bool waits = !self->requester_.empty() && self->state() == IBV_QPS_RTS;
    if (!waits || self->Progress() != before) {
      self->postponed_ = 0;
      return self->WatchProgress();
    }
    if (self->counters_.bytes_received.value() != heard && self->postponed_ < kMostPostponements) {
      ++self->postponed_;
      return self->WatchProgress();
    }
    self->postponed_ = 0;
    LogWarning(Format("qp 0x%x: no answer from %s to work request %llu (%s); the queue pair is in error", self->number_,
                      self->PeerName().c_str(), static_cast<unsigned long long>(self->requester_.oldest().id),
                      NameOf(self->requester_.oldest().opcode)));
    self->Fail(/*orderly=*/false, IBV_WC_RETRY_EXC_ERR);
  };
  retry_timer_ = adapter_.network().RunAt(adapter_.network().Now() + limit, std::move(look));
}

void QueuePair::Lose(bool orderly) {
  if (!dialled_) {
    const bool retried = connection_->reliable && !orderly;  // iWARP has no retries that could be exceeded
    return Fail(orderly, retried ? std::optional(IBV_WC_RETRY_EXC_ERR) : std::nullopt);
  }
  // As on InfiniBand: a queue pair learns that its peer is gone when it wants something from it.
  if (retry_timer_ != 0) adapter_.network().Cancel(std::exchange(retry_timer_, 0));
  if (refusal_timer_ != 0) adapter_.network().Cancel(std::exchange(refusal_timer_, 0));
  CloseConnection(orderly);
  lost_ = true;
  AskNobody();
}

void QueuePair::AskNobody() {
  if (options_.type != IBV_QPT_UC) return WatchProgress();
  // What an unreliable connection sends is done when it is sent, whoever may hear it.
  if (state() != IBV_QPS_RTS) return;
  requester_.CompleteAll();
}

void QueuePair::TellOfDrain() {
  if (drain_told_ || state() != IBV_QPS_SQD || sends().retired() != sends().started) return;
  drain_told_ = true;
  upcalls_.push_back(Upcall::kDrained);
}

}  // namespace weft::sim
