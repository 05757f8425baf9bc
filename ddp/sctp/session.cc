#include "ddp/sctp/session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "ddp/sctp/association.h"

// What comes of the peer, and the states. What goes out is in session_output.cc.
namespace weft::ddp::sctp {
namespace {

constexpr size_t kAll = SIZE_MAX;

}  // namespace

const char* ToString(SessionState state) {
  switch (state) {
    case SessionState::kInitiated:
      return "initiated";
    case SessionState::kRequested:
      return "requested";
    case SessionState::kAccepted:
      return "accepted";
    case SessionState::kRejected:
      return "rejected";
    case SessionState::kRefused:
      return "refused";
    case SessionState::kEnded:
      return "ended";
    case SessionState::kFailed:
      return "failed";
    case SessionState::kLost:
      return "lost";
  }
  return "?";
}

Session::Session(Association& association, uint16_t stream, bool active)
    : association_(association),
      stream_(stream),
      active_(active),
      state_(active ? SessionState::kInitiated : SessionState::kRequested) {}

Session::~Session() { window_.Clear(association_.held_); }

std::string Session::ToString() const {
  char text[160];
  std::snprintf(text, sizeof(text), "stream %u, %s, %s%s: %llu messages in, %zu held, %llu out", stream_,
                active_ ? "active" : "passive", sctp::ToString(state_), ending_ && !end_out_ ? ", ending" : "",
                static_cast<unsigned long long>(window_.next()), window_.held(), static_cast<unsigned long long>(out_));
  return why_.empty() ? text : std::string(text) + "; " + why_;
}

void Session::SetState(SessionState state) {
  if (state_ == SessionState::kRequested) --association_.requests_;
  state_ = state;
}

void Session::TellState(SessionState state) {
  SetState(state);
  association_.Tell(*this);
}

// --- set-up ---

bool Session::Accept(ByteSpan private_data) {
  if (state_ != SessionState::kRequested || private_data.size() > kMaxPrivateData) return false;
  WEFT_CHECK(!enhanced_ || private_data.size() >= kReadsLength);
  SetOpening(Chunk::Kind::kAccept, private_data);
  established_ = true;
  SetState(SessionState::kAccepted);
  UpdateHolding();
  return true;
}

bool Session::Reject(ByteSpan private_data) {
  if (state_ != SessionState::kRequested || private_data.size() > kMaxPrivateData) return false;
  SetOpening(Chunk::Kind::kReject, private_data);
  SetState(SessionState::kRejected);
  Ignore();
  return true;
}

// --- from the peer ---

void Session::SetOpen(bool open) {
  open_ = open;
  UpdateHolding();
}

size_t Session::Deliver(size_t most) {
  if (sink_ == nullptr) return 0;
  const bool was_open = std::exchange(open_, true);
  const size_t count = Drain(most);
  open_ = was_open;
  DiscardIfStopped();
  UpdateHolding();
  LeaveIfDelivered();
  return count;
}

bool Session::deliverable() const {
  return state_ == SessionState::kAccepted && !ignoring_ && window_.next_held() != nullptr;
}

void Session::OnChunk(const Chunk& chunk) {
  if (ignoring_) return;
  if (active_ && !opening_out_) return Illegal(chunk.kind);  // it cannot answer what was not sent
  switch (window_.Find(chunk.ssn)) {
    case SsnWindow::Place::kReplay:
      return Fail(SessionError::kReplay, "DDP-SSN " + std::to_string(chunk.ssn) + " came twice");
    case SsnWindow::Place::kOutside:
      return Fail(SessionError::kGap, "DDP-SSN " + std::to_string(chunk.ssn) +
                                          " was used before, or is too far ahead: " +
                                          std::to_string(static_cast<uint16_t>(window_.next())) + " is next");
    case SsnWindow::Place::kEarly:
      if (window_.next_held() == nullptr) ++association_.counters_.early;
      return Hold(chunk);
    case SsnWindow::Place::kNext:
      break;
  }
  if (!CanTake(chunk.kind)) return Hold(chunk);
  window_.Advance();
  if (chunk.kind == Chunk::Kind::kSegment) {
    TakeSegment(chunk.body);
  } else {
    TakeControl(chunk.kind, chunk.enhanced, chunk.body);
  }
  if (window_.held() != 0) [[unlikely]] {
    Drain(kAll);
    UpdateHolding();
  }
  DiscardIfStopped();
}

// What may be looked at now that it is its turn: a segment waits for the answer to the request, and for the sink.
bool Session::CanTake(Chunk::Kind kind) const {
  if (kind != Chunk::Kind::kSegment) return true;
  if (state_ == SessionState::kRequested) return false;
  if (state_ != SessionState::kAccepted) return true;
  return discarding_ || stopped_ || (open_ && sink_ != nullptr);
}

void Session::Hold(const Chunk& chunk) {
  const bool unwanted = chunk.kind == Chunk::Kind::kSegment && (discarding_ || stopped_);
  const ByteSpan body = unwanted ? ByteSpan() : chunk.body;
  if (!association_.MakeRoom(*this, body.size())) return;
  window_.Hold(chunk.ssn, {.kind = chunk.kind, .enhanced = chunk.enhanced, .body = association_.held_.Keep(body)});
  UpdateHolding();
}

size_t Session::Drain(size_t most) {
  size_t count = 0;
  while (count < most && !ignoring_) {
    const SsnWindow::Early* const next = window_.next_held();
    if (next == nullptr || !CanTake(next->kind)) break;
    const SsnWindow::Early early = *next;
    window_.AdvanceOverHeld();
    TakeHeld(early);
    association_.held_.Drop(early.body);
    ++count;
  }
  return count;
}

void Session::TakeHeld(const SsnWindow::Early& early) {
  if (early.kind == Chunk::Kind::kSegment) return TakeSegment(early.body);
  std::vector<uint8_t> private_data;
  HeldMessages::Reader reader(association_.held_, early.body);
  for (ByteSpan bytes = reader.Next(); !bytes.empty(); bytes = reader.Next()) {
    private_data.insert(private_data.end(), bytes.begin(), bytes.end());
  }
  TakeControl(early.kind, early.enhanced, private_data);
}

// Sections 6.2 to 6.4, and RFC 6581 section 7. Two Initiates that meet on a stream fit to none of the sequences: both
// ends terminate.
void Session::TakeControl(Chunk::Kind kind, bool enhanced, ByteSpan private_data) {
  if (state_ == SessionState::kInitiated) {
    if (TakeAnswer(kind, enhanced, private_data)) return;
  } else if (kind == Chunk::Kind::kTerminate && !peer_ended_) {
    peer_ended_ = true;
    const bool unanswered = state_ == SessionState::kRequested;
    TellState(SessionState::kEnded);
    if (unanswered) End();
    return;
  }
  Illegal(kind);
}

bool Session::TakeAnswer(Chunk::Kind kind, bool enhanced, ByteSpan private_data) {
  switch (kind) {
    case Chunk::Kind::kAccept:
      // An enhanced one belongs to an enhanced request, and the other way round.
      if (enhanced != enhanced_) return false;
      established_ = true;
      private_data_.assign(private_data.begin(), private_data.end());
      TellState(SessionState::kAccepted);
      association_.Ready(*this);  // a Terminate may have waited for it
      return true;
    case Chunk::Kind::kReject:
      // A plain one to an enhanced request says that the plain one would be rejected as well.
      if (enhanced && !enhanced_) return false;
      enhanced_ = enhanced;
      private_data_.assign(private_data.begin(), private_data.end());
      peer_ended_ = true;
      TellState(SessionState::kRejected);
      Ignore();
      return true;
    case Chunk::Kind::kTerminate:
      peer_ended_ = true;
      TellState(SessionState::kRefused);
      Ignore();
      return true;
    case Chunk::Kind::kInitiate:
    case Chunk::Kind::kSegment:
      return false;
  }
  return false;
}

bool Session::MayTakeSegment() {
  if (state_ != SessionState::kAccepted) {
    Illegal(Chunk::Kind::kSegment);
    return false;
  }
  if (peer_waits_ && !peer_has_answer_) {
    peer_has_answer_ = true;
    association_.Ready(*this);
  }
  return !stopped_ && !discarding_;
}

void Session::TakeSegment(ByteSpan segment) {
  if (!MayTakeSegment()) return;
  llp::UlpduPlan plan;
  if (!BeginUlpdu(segment.size(), segment.first(std::min(segment.size(), llp::kUlpduHeadLength)), &plan)) return;
  if (!plan.discard && !placement_.Copy(segment.subspan(plan.header_length))) sink_->OnUnplaceable();
  EndUlpdu(segment.size());
}

void Session::TakeSegment(const HeldMessages::Message& segment) {
  if (!MayTakeSegment()) return;
  static_assert(HeldMessages::kCellSize >= llp::kUlpduHeadLength);
  HeldMessages::Reader reader(association_.held_, segment);
  ByteSpan bytes = reader.Next();
  llp::UlpduPlan plan;
  if (!BeginUlpdu(segment.length, bytes.first(std::min(bytes.size(), llp::kUlpduHeadLength)), &plan)) return;
  if (!plan.discard && !PlaceHeld(bytes.subspan(plan.header_length), reader)) sink_->OnUnplaceable();
  EndUlpdu(segment.length);
}

// A message that was held lies in cells of 256 bytes, mostly one behind the other: one copy.
bool Session::PlaceHeld(ByteSpan bytes, HeldMessages::Reader& rest) {
  std::array<iovec, 64> cells;
  for (size_t count = 0;;) {
    if (count != 0 && static_cast<const uint8_t*>(cells[count - 1].iov_base) + cells[count - 1].iov_len == bytes.data()) {
      cells[count - 1].iov_len += bytes.size();
    } else if (!bytes.empty()) {
      cells[count++] = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
    }
    bytes = rest.Next();
    if (count == cells.size() || bytes.empty()) {
      if (!placement_.CopyAll({cells.data(), count})) return false;
      count = 0;
    }
    if (bytes.empty()) return true;
  }
}

bool Session::BeginUlpdu(size_t length, ByteSpan head, llp::UlpduPlan* plan) {
  if (!sink_->Begin(length, head, plan)) {
    stopped_ = true;
    return false;
  }
  WEFT_CHECK(plan->header_length <= head.size());
  placement_.Start(plan->payload, plan->ours);
  return true;
}

void Session::EndUlpdu(size_t length) {
  received_ += length;
  if (!sink_->End()) stopped_ = true;
}

void Session::DiscardIfStopped() {
  if (stopped_ && !discarding_) Discard();
}

void Session::Illegal(Chunk::Kind kind) {
  Fail(SessionError::kIllegal, std::string(kind == Chunk::Kind::kSegment ? "a" : "an unexpected ") +
                                   (kind == Chunk::Kind::kSegment ? " segment" : sctp::ToString(kind)) + " while " +
                                   (peer_ended_ ? "it had ended its direction" : sctp::ToString(state_)));
}

void Session::Fail(SessionError error, std::string why) {
  if (ignoring_) return;
  error_ = error;
  why_ = "the peer sent " + std::move(why);
  ++association_.counters_.failed;
  TellState(SessionState::kFailed);
  Ignore();
  // An Initiate that is not out yet would come too late.
  if (active_ && !opening_out_) opening_.clear();
  // Whoever has a sink may have last words (RFC 5043 section 11.3).
  if (sink_ == nullptr || released_) End();
}

void Session::Ignore() {
  ignoring_ = true;
  window_.Clear(association_.held_);
  UpdateHolding();
}

void Session::Discard() {
  discarding_ = true;
  window_.Shrink(association_.held_);
  Drain(kAll);
  UpdateHolding();
  LeaveIfDelivered();
}

// Nothing more can come to it: the peer began another session on the stream (kEnded), or the association is gone
// (kLost). What is here and in order is still delivered first.
void Session::Leave(SessionState last) {
  if (input_over()) return;
  leaving_ = true;
  last_state_ = last;
  LeaveIfDelivered();
}

void Session::LeaveIfDelivered() {
  if (!leaving_ || input_over() || deliverable()) return;
  peer_ended_ = last_state_ == SessionState::kEnded;
  if (state_ == SessionState::kInitiated && peer_ended_) {
    TellState(SessionState::kRefused);
  } else {
    TellState(last_state_);
  }
  Ignore();
}

void Session::OnLost() {
  if (sender_ != nullptr) sender_->Clear();
  opening_.clear();
  if (input_over()) return association_.Tell(*this);  // how it ended was said; what it had to say is lost
  Leave(SessionState::kLost);
}

void Session::UpdateHolding() {
  if (!deliverable()) return association_.holding_.Remove(*this);
  association_.holding_.Add(*this);
  association_.Tell(*this);
}

}  // namespace weft::ddp::sctp
