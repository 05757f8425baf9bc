#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/copy.h"
#include "base/iovec_length.h"
#include "base/program_memory.h"
#include "base/uncancelled.h"
#include "wires/host/channel/channel.h"

// What comes from the peer.
namespace weft::host {
namespace {

using llp::Received;

// In one call of Receive(), for each read that a byte stream would be given.
constexpr size_t kRecordsPerRead = 8, kBytesPerRead = 8 * 1024;
// The producer hears of room when so much is there, or nothing more is to be read.
constexpr uint64_t kPublishEvery = kRingLines / 4;

// False: the memory is not there (any more).
[[nodiscard]] bool Place(const llp::UlpduPlan& plan, const uint8_t* from) {
  for (const iovec& piece : plan.payload) {
    if (plan.ours) {
      CopyShortBytes(piece.iov_base, from, piece.iov_len);
    } else if (!CopyToProgram(piece.iov_base, from, piece.iov_len)) [[unlikely]] {
      return false;
    }
    from += piece.iov_len;
  }
  return true;
}

bool IsEnd(const Received& received) { return received.kind != Received::Kind::kNothing && received.kind != Received::Kind::kSome; }

}  // namespace

Received Channel::Receive(unsigned most) {
  if (bell_news_ != nullptr && bell_news_->Take()) HearBell();
  if (in_ == Way::kRing) [[likely]] return ReceiveFromRing(most);
  return in_ == Way::kUndecided ? Decide(most) : tcp_->Receive(most);
}

Received Channel::Decide(unsigned most) {
  const auto joined = [this] { return control().joined.load(std::memory_order_acquire) != 0; };
  Received received;
  if (!joined()) {
    received = tcp_->Receive(most);
    if (received.kind == Received::Kind::kNothing) return received;
    if (received.bytes != 0 || !joined()) {
      SettleOnTcp();
      return received;
    }
    end_ = received;  // behind what is in the ring
  }
  Join();
  if (wants_tcp_) MoveToTcp();
  return ReceiveFromRing(most);
}

Received Channel::ReceiveFromRing(unsigned most) {
  if (error_ != 0) [[unlikely]] return {.kind = Received::Kind::kFailed, .error = error_};
  Received received;
  Consumer::Record record;  // NOLINT: filled by Next()
  size_t records = size_t{most} * kRecordsPerRead;
  const size_t most_bytes = size_t{most} * kBytesPerRead;
  if (fetching_ && !TakeCopy(&received)) return received;
  while (in_ == Way::kRing) {
    if (records == 0 || received.bytes >= most_bytes) {
      CallAgain();
      break;
    }
    const Consumer::Look look = consumer_.Next(&record);
    if (look == Consumer::Look::kRecord) {
      --records;
      if (!references_.empty()) TellOfPassed();
      const bool well = Deliver(record, &received);
      if (fetching_) [[unlikely]] break;  // it is to be seen to first
      if (!well) granter_.ShutAll();  // before the peer can see that we are through with it
      consumer_.Consume(record);
      if (record.kind == Kind::kReference || consumer_.unpublished() >= kPublishEvery) {
        consumer_.Publish();
        owes_bell_ = true;
      }
      if (!well) break;
      continue;
    }
    if (look == Consumer::Look::kRevoked) [[unlikely]] {
      Revoked(&received);
      break;
    }
    if (look == Consumer::Look::kNonsense) {
      received.kind = Received::Kind::kStopped;
      received.broken = llp::Error::kMisframed;
      break;
    }
    if (received.bytes == 0 && tcp_news_->Take()) [[unlikely]] end_ = tcp_->Receive(1);
    if (end_ && IsEnd(*end_)) {
      if (received.bytes == 0 && (look == Consumer::Look::kBusy || consumer_.empty())) {
        if (!references_.empty()) TellOfPassed();
        return *end_;
      }
      CallAgain();
    }
    if (look == Consumer::Look::kBusy) break;  // it rings
    if (watchman_->lent() || consumer_.asleep() || consumer_.Sleep()) break;
    consumer_.StayAwake();
  }
  // Who waits for room is woken once, when there is a lot of it. A program that looks again at once has its message first.
  if (owes_bell_ || (consumer_.unpublished() != 0 && (received.bytes == 0 || !watchman_->lent()))) Publish();
  if (received.kind == Received::Kind::kNothing && received.bytes != 0) received.kind = Received::Kind::kSome;
  return received;
}

// The peer may answer what it read, or end the connection, and the program is to hear first that it was sent.
void Channel::TellOfPassed() {
  const uint64_t before = RingConsumed();
  if (DropPassed() && RingConsumed() != before) sink_->OnTransmitted(consumed());
}

// Nothing will say that there is more.
void Channel::CallAgain() {
  if (watchman_->lent()) return;
  network_.Post([user = user_] {
    if (const auto alive = user.lock()) alive->OnWake();
  });
}

bool Channel::Deliver(const Consumer::Record& record, Received* received) {
  switch (record.kind) {
    case Kind::kUlpdu:
      return DeliverUlpdu(record, received);
    case Kind::kReference:
      return DeliverReference(record, received);
    case Kind::kPlaced:
      return DeliverPlaced(record, received);
    case Kind::kMoved:
      granter_.ShutAll();
      in_ = Way::kTcp;
      CallAgain();
      return true;
    default:
      if (out_ == Way::kRing) MoveToTcp();
      CallAgain();
      return true;
  }
}

bool Channel::DeliverUlpdu(const Consumer::Record& record, Received* received) {
  std::array<uint8_t, llp::kUlpduHeadLength> head;  // NOLINT: filled here
  const size_t head_length = std::min<size_t>(record.length, head.size());
  std::memcpy(head.data(), record.bytes.data(), head_length);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // a copy is a copy
  llp::UlpduPlan plan{.acknowledged = record.acknowledged};
  received->bytes += FpduLength(record.length);
  if (!sink_->Begin(record.length, ByteSpan(head).first(head_length), &plan)) {
    received->kind = Received::Kind::kStopped;
    return false;
  }
  if (!plan.discard) {
    if (!Place(plan, record.bytes.data() + plan.header_length)) [[unlikely]] sink_->OnUnplaceable();
  }
  if (!sink_->End()) {
    received->kind = Received::Kind::kStopped;
    return false;
  }
  Delivered(ByteSpan(head).first(plan.header_length), plan);
  return true;
}

// What is dropped comes once more, and what would be placed in front of it was to come behind it.
void Channel::Delivered(ByteSpan header, const llp::UlpduPlan& plan) {
  if (plan.discard) [[unlikely]] return granter_.ShutAll();
  if (!granter_.peer_reaches() || !options_.reach) return;
  const auto tag = sink_->ReachedTag(header);
  if (!tag || granter_.IsOpen(*tag)) return;
  const auto buffer = sink_->OpenBuffer(*tag);
  if (buffer) granter_.Open(*buffer);
}

bool Channel::DeliverPlaced(const Consumer::Record& record, llp::Received* received) {
  const ByteSpan header = ByteSpan(record.header).first(record.header_length);
  received->bytes += FpduLength(record.length);
  received->kind = Received::Kind::kStopped;
  llp::UlpduPlan plan{.placed = true};
  if (!sink_->PlacementOf(header)) {  // it would have been given bytes that nobody wrote
    received->broken = llp::Error::kMisframed;
    return false;
  }
  if (!sink_->Begin(record.length, header, &plan) || !sink_->End()) return false;
  if (plan.discard) granter_.ShutAll();
  received->kind = Received::Kind::kNothing;
  return true;
}

bool Channel::DeliverReference(const Consumer::Record& record, Received* received) {
  llp::UlpduPlan plan{.acknowledged = record.acknowledged};
  received->bytes += FpduLength(record.length);
  received->kind = Received::Kind::kStopped;
  if (!we_read_) {
    received->broken = llp::Error::kMisframed;
    return false;
  }
  if (!sink_->Begin(record.length, ByteSpan(record.header).first(record.header_length), &plan)) return false;
  if (!plan.discard) {
    const size_t length = record.length - record.header_length;
    if (plan.header_length != record.header_length || TotalLength(plan.payload) != length) {
      received->broken = llp::Error::kMisframed;
      return false;
    }
    error_ = peer_memory_.Read(plan.payload, std::span(record.payload).first(record.pieces), length);
    if (!consumer_.IsStillOurs()) return Revoked(received);
    // Whose memory is it that is not there? The peer finds it out about its own when it is to copy it, and ends the connection.
    const bool ours = error_ == EFAULT && !IsProgramMemory(plan.payload);
    if (error_ != 0 && error_ != ESRCH && !ours) return AskForCopy(record, plan, received);
    if (ours) {
      error_ = 0;
      sink_->OnUnplaceable();
    }
    if (error_ != 0) {
      received->kind = Received::Kind::kFailed;
      received->error = error_;
      return false;
    }
  }
  if (!sink_->End()) return false;
  Delivered(ByteSpan(record.header).first(record.header_length), plan);
  received->kind = Received::Kind::kNothing;
  return true;
}

// The peer ended the connection while a long payload of its was not read yet: what came is what had come, and nothing behind it.
bool Channel::Revoked(Received* received) {
  error_ = ECONNRESET;
  received->kind = Received::Kind::kFailed;
  received->error = error_;
  return false;
}

// The right to read the peer's memory is gone (setuid(2), PR_SET_DUMPABLE, a filter of system calls, at either end), or the memory is: the peer copies what
// it has referenced already, one by one, and all that it sends from now on. It rings when it has. It may be waiting for a copy of ours at the same time.
bool Channel::AskForCopy(const Consumer::Record& record, const llp::UlpduPlan& plan, Received* received) {
  error_ = 0;
  received->bytes -= FpduLength(record.length);  // they count when they are there
  placer_.SetReaches(false);
  if (!consumer_.Refuse()) return Revoked(received);
  fetching_.emplace(Fetching{record, plan});
  received->kind = Received::Kind::kNothing;
  RingBell();
  return true;
}

// False: it is not there yet, or the stream is over; `*received` says which.
bool Channel::TakeCopy(Received* received) {
  CopyRefused();
  if (!consumer_.IsStillOurs()) return Revoked(received);
  if (!consumer_.IsCopied()) {
    if (tcp_news_->Take()) end_ = tcp_->Receive(1);
    if (end_ && IsEnd(*end_)) *received = *end_;
    return false;
  }
  Fetching done = *std::exchange(fetching_, std::nullopt);
  if (!done.plan.discard) {
    if (!Place(done.plan, met_->memory->Copy(!options_.initiator))) sink_->OnUnplaceable();
  }
  if (!consumer_.IsStillOurs()) return Revoked(received);
  received->bytes += FpduLength(done.record.length);
  if (!sink_->End()) {
    received->kind = Received::Kind::kStopped;
    granter_.ShutAll();
  } else {
    Delivered(ByteSpan(done.record.header).first(done.record.header_length), done.plan);
  }
  consumer_.Consume(done.record);
  consumer_.Publish();
  owes_bell_ = true;
  if (received->kind == Received::Kind::kNothing) return true;
  Publish();
  return false;
}

void Channel::Publish() {
  consumer_.Publish();
  owes_bell_ = false;
  if (consumer_.TakeBell()) RingBell();
}

void Channel::HearBell() {
  char bytes[64];
  ssize_t got;
  do {
    got = uncancelled::Receive(met_->bell.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  } while (got == static_cast<ssize_t>(sizeof bytes));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) Unwatch();  // the end is TCP's to tell
  CopyRefused();  // it may be what the peer rang for
}

}  // namespace weft::host
