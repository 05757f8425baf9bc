#include "wires/host/channel/channel.h"

#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/iovec_length.h"
#include "base/log.h"
#include "base/program_memory.h"
#include "base/uncancelled.h"

namespace weft::host {
namespace {

using llp::Flushed;
using llp::Received;

// What nobody but the last words, and signals, may take: a Terminate and an acknowledgement fit.
constexpr uint32_t kSpareLines = 16;
static_assert(kMostUlpdu <= llp::kLongestUlpdu);

// The program may have unmapped what it has not deregistered.
bool CopyWhatIsThere(uint8_t* to, const uint8_t* from, size_t count) { return ReadProgramMemory(to, from, count); }

}  // namespace

Channel::Channel(transport::Network& network, std::unique_ptr<llp::Channel> tcp, std::unique_ptr<Met> met, ChannelOptions options)
    : network_(network),
      tcp_(std::move(tcp)),
      met_(std::move(met)),
      options_(std::move(options)),
      peer_memory_(met_->peer),
      placer_(options_.initiator ? control().by_responder : control().by_initiator, peer_memory_),
      lent_(std::make_shared<LentMemory>(met_, options_.initiator)),
      references_(lent_->references()),
      granter_(lent_->granter()),
      producer_(met_->memory->MakeProducer(options_.initiator)),
      consumer_(met_->memory->MakeConsumer(options_.initiator)),
      out_(options_.initiator ? Way::kTcp : Way::kUndecided),
      in_(out_),
      places_(options_.initiator ? control().initiator_polls_on : control().responder_polls_on,
              options_.initiator ? control().responder_polls_on : control().initiator_polls_on) {
  if (!options_.reach) return;
  PeerMemory::Admit(met_->peer);
  PeerMemory::ShowProbe(options_.initiator ? control().of_initiator : control().of_responder);
}

Channel::~Channel() {
  Unwatch();
  if (!closing_) lent_->RevokeAll(producer_);
}

void Channel::Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) {
  sink_ = &sink;
  tcp_->Start(sink, user);
  user_ = user;
  watchman_ = std::make_shared<Watchman>(network_, std::move(user));
}

transport::WatchId Channel::Watch(std::shared_ptr<transport::ReadyHandler> handler) {
  tcp_news_ = std::make_shared<News>(handler);
  bell_news_ = std::make_shared<News>(std::move(handler));
  const transport::WatchId tcp_watch = tcp_->Watch(tcp_news_);
  bell_watch_ = network_.WatchDescriptor(met_->bell.get(), bell_news_);
  const bool can = bell_watch_ != 0 && !wants_tcp_ && !(options_.needs_tcp && options_.needs_tcp());
  if (options_.initiator && can && control().declined.load(std::memory_order_acquire) == 0) {
    Join();
    control().joined.store(1, std::memory_order_release);
  } else if (options_.initiator || !can) {
    // Our answer is not out yet: an initiator that has it sees this.
    if (!options_.initiator) control().declined.store(1, std::memory_order_release);
    SettleOnTcp();
  }
  return bell_watch_ != 0 ? bell_watch_ : tcp_watch;
}

void Channel::Join() {
  out_ = in_ = Way::kRing;
  LearnWhetherWeRead();
  if (TraceEnabled()) {
    Trace(Format("the connection with %s goes through shared memory; %s", PeerAddress().ToString().c_str(),
                 we_read_ ? "the peer's memory can be read" : "all of it"));
  }
}

void Channel::LearnWhetherWeRead() {
  we_read_ = options_.reach && peer_memory_.TryProbe(options_.initiator ? control().of_responder : control().of_initiator);
  if (!we_read_) return;
  consumer_.SetReadsMemory();
  placer_.SetReaches(peer_memory_.TryWriting());
}

void Channel::SettleOnTcp() {
  out_ = in_ = Way::kTcp;
  Unwatch();
  met_->bell.Close();
}

void Channel::Unwatch() {
  if (bell_watch_ != 0) network_.Unwatch(std::exchange(bell_watch_, 0));
}

// --- to the peer ---

bool Channel::ReadyToSend() {
  starved_ = false;
  if (out_ == Way::kRing) [[likely]] return true;
  if (output_ended_) return false;
  if (out_ == Way::kUndecided) return tcp_->ReadyToSend();
  return tcp_->ReadyToSend() || moved_;  // what MPA waits for, a first FPDU, came through the ring
}

size_t Channel::max_ulpdu() const {
  if (out_ != Way::kRing) return tcp_->writer().max_ulpdu();
  if (!peer_reads_) peer_reads_ = producer_.consumer_reads_memory();
  return peer_reads_ ? kMostUlpdu : kMostCopied;
}

bool Channel::HasRoom(size_t payload_length, size_t payload_pieces) const {
  if (out_ != Way::kRing) return tcp_->writer().HasRoom(payload_length, payload_pieces);
  if (payload_gone_) [[unlikely]] return false;
  const bool by_reference = GoesByReference(payload_length);
  const size_t bytes = by_reference ? Producer::ReferenceRecordBytes(payload_pieces) : Producer::RecordBytes(kHeaderRoom + payload_length);
  if ((!by_reference || !references_.full()) && producer_.HasRoom(bytes, closing_ ? 0 : kSpareLines)) [[likely]] return true;
  starved_ = true;
  return false;
}

void Channel::AppendAcknowledging(ByteSpan header, std::span<const iovec> payload, bool volatile_payload, uint8_t acknowledged) {
  placed_ = false;
  if (out_ != Way::kRing) return tcp_->writer().Append(header, payload, volatile_payload);
  const size_t length = TotalLength(payload);
  appended_ += FpduLength(header.size() + length);
  if (acknowledged == 0 && PlaceByOurselves(header, payload, length)) return;  // else the peer's program could find it first
  if (GoesByReference(length)) {
    WEFT_CHECK(!volatile_payload);  // inline data and control messages are short
    const uint64_t before = appended_ - FpduLength(header.size() + length);
    references_.Add(producer_.AppendReference(header, payload, length, acknowledged), before, payload, length);
  } else {
    if (!producer_.AppendUlpdu(header, payload, length, acknowledged, volatile_payload)) [[unlikely]] {
      payload_gone_ = true;
      return;
    }
  }
  if (sink_->TouchesMemory(header)) to_place_ = producer_.head();
  to_tell_ = producer_.head();
}

// Not before the peer is through with all that it has to see to by itself: a program that finds a later Write in its memory may trust that what was sent
// before is there, too.
bool Channel::PlaceByOurselves(ByteSpan header, std::span<const iovec> payload, size_t length) {
  if (!placer_.reaches() || length == 0) return false;
  const auto placement = sink_->PlacementOf(header);
  if (!placement || (length < kLeastReference && !placement->awaited)) return false;  // short ones that nobody waits for are sooner in the ring
  if (!AllIsTaken()) return false;
  if (!placer_.Place(*placement, payload, length)) return false;
  placed_ = true;
  producer_.AppendPlaced(header, length);
  if (placement->answered) to_tell_ = producer_.head();
  return true;
}

// The peer is through with all that it has to see to by itself.
bool Channel::AllIsTaken() { return producer_.passed() >= to_place_ || (DropPassed() && producer_.passed() >= to_place_); }

bool Channel::Fetch(uint32_t tag, uint64_t offset, std::span<const iovec> to, size_t length, bool alone) {
  if (out_ != Way::kRing || !placer_.reaches() || length > kMostFetched) return false;
  if (!alone && length < kLeastReference) return false;  // many short ones are sooner answered than the kernel is asked for each
  if (!AllIsTaken()) return false;
  return placer_.Fetch(tag, offset, to, length);
}

// What is placed, and not to be answered, can wait until there is more, or a lot of it.
bool Channel::OwesBell() {
  if (to_tell_ > rung_) return true;
  if (producer_.head() - std::max(producer_.passed(), rung_) <= kRingLines / 2) return false;
  return DropPassed() && producer_.head() - std::max(producer_.passed(), rung_) > kRingLines / 2;
}

bool Channel::DropPassed() {
  if (!producer_.Refresh()) {
    error_ = EPROTO;
    return false;
  }
  while (!references_.empty() && references_.oldest().line < producer_.passed()) references_.DropOldest();
  return true;
}

Flushed Channel::Flush() {
  if (payload_gone_) [[unlikely]] return {.kind = Flushed::Kind::kFailed};
  if (out_ == Way::kRing && producer_.head() != rung_ && OwesBell()) {
    rung_ = producer_.head();
    if (producer_.TakeBell() || starved_) RingBell();  // who said that he looks may have stopped, and all waits for him
  }
  for (;;) {
    const uint64_t passed = producer_.passed();
    const size_t references = references_.size();
    if ((starved_ || !references_.empty()) && !DropPassed()) return {.kind = Flushed::Kind::kFailed};
    const bool more_room = producer_.passed() != passed || references_.size() != references;
    const uint64_t consumed = RingConsumed();
    const size_t bytes = consumed - std::exchange(reported_, consumed);
    const bool waits = starved_ || !references_.empty();
    if (out_ != Way::kRing) [[unlikely]] {
      Flushed flushed = tcp_->Flush();
      flushed.bytes += bytes;
      if (flushed.kind == Flushed::Kind::kEmpty && bytes != 0) flushed.kind = Flushed::Kind::kAll;
      if (waits && producer_.AskForRoom()) continue;
      return flushed;
    }
    if (!waits) return {.kind = bytes != 0 ? Flushed::Kind::kAll : Flushed::Kind::kEmpty, .bytes = bytes};
    if (starved_ && more_room) {
      starved_ = false;  // the stream tries again
      return {.kind = Flushed::Kind::kAll, .bytes = bytes};
    }
    if (watchman_->lent() || !producer_.AskForRoom()) return {.kind = Flushed::Kind::kBlocked, .bytes = bytes};
    reported_ -= bytes;  // they are told of with what has passed meanwhile
  }
}

uint64_t Channel::consumed() const { return references_.empty() ? appended_ + tcp_->consumed() : RingConsumed(); }

void Channel::RingBell() { uncancelled::Send(met_->bell.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

void Channel::TakeOver(const void* begin, size_t length, Copy copy) {
  tcp_->TakeOver(begin, length, copy);
  if (!references_.empty()) {
    if (!DropPassed()) return lent_->RevokeAll(producer_);
    CopyRefused();
  }
  bool replaced = false;
  const int error = lent_->TakeBack(producer_, begin, length, copy, &replaced);
  payload_gone_ |= error == EFAULT;
  if (error == ETIMEDOUT) error_ = error;
  if (replaced) RingBell();  // it may have found the record in our hands
}

void Channel::Shut() {
  tcp_->Shut();
  granter_.ShutAll();
}

void Channel::CopyRefused() {
  if (references_.empty() || producer_.consumer_reads_memory()) [[likely]] return;
  for (size_t i = 0; i < references_.size(); ++i) {
    const References::One& one = references_.at(i);
    if (one.line < producer_.passed() || !producer_.IsRefused(one.line)) continue;
    uint8_t* to = met_->memory->Copy(options_.initiator);
    if (one.taken_over != nullptr) {
      std::memcpy(to, one.taken_over.get(), one.length);
    } else {
      for (const iovec& piece : std::span(one.payload).first(one.pieces)) {
        payload_gone_ |= !CopyWhatIsThere(to, static_cast<const uint8_t*>(piece.iov_base), piece.iov_len);
        to += piece.iov_len;
      }
      if (payload_gone_) return lent_->RevokeAll(producer_);
    }
    if (std::exchange(peer_reads_, false) && TraceEnabled()) Trace(Format("the process at %s may not read our memory any more: what it gets is copied", PeerAddress().ToString().c_str()));
    producer_.SetCopied(one.line);
    return RingBell();
  }
}

// --- readiness ---

bool Channel::Lend() {
  if (in_ != Way::kRing) return tcp_->Lend();
  watchman_->Lend();
  consumer_.StayAwake();
  return places_.Share();
}

void Channel::EndLend() {
  places_.Stop();
  if (watchman_ != nullptr) watchman_->EndLend();
}

// --- faults ---

void Channel::ApplyFaults() {
  wants_tcp_ |= options_.needs_tcp && options_.needs_tcp();
  if (wants_tcp_) granter_.ShutAll();
  if (wants_tcp_ && out_ == Way::kRing) {
    producer_.AppendSignal(Kind::kMove);
    MoveToTcp();
  }
  tcp_->ApplyFaults();
}

// There is room: it is kept for that.
void Channel::MoveToTcp() {
  producer_.AppendSignal(Kind::kMoved);
  rung_ = producer_.head();
  out_ = Way::kTcp;
  moved_ = true;
  RingBell();
  if (TraceEnabled()) Trace(Format("the connection with %s leaves shared memory for TCP", PeerAddress().ToString().c_str()));
}

// --- the end ---

void Channel::Leave() {
  Unwatch();
  CopyRefused();
  lent_->Keep(producer_, network_, CopyWhatIsThere);
}

void Channel::Close(const std::function<void(llp::UlpduWriter&)>& last) {
  if (failed()) return Abort();
  closing_ = true;
  if (out_ == Way::kRing) {
    last(*this);
    if (producer_.TakeBell()) RingBell();
    Leave();
    return tcp_->Close([](llp::UlpduWriter&) {});
  }
  Leave();
  tcp_->Close(last);
}

void Channel::Abort() {
  Unwatch();
  lent_->RevokeAll(producer_);
  tcp_->Abort();
}

// Other handlers of the program's end run, and use its memory for something else.
void Channel::OnExit() {
  CopyRefused();
  if (!failed()) lent_->Keep(producer_, network_, CopyWhatIsThere);
  tcp_->OnExit();
}

std::string Channel::Describe() const {
  return out_ == Way::kRing ? "shared memory" : tcp_->Describe();
}

}  // namespace weft::host
