#include "base/byte_writer.h"
#include "base/check.h"
#include "base/iovec_length.h"
#include "base/program_memory.h"
#include "ddp/sctp/association.h"
#include "ddp/sctp/session.h"

// What a session sends, and when it may.
namespace weft::ddp::sctp {

void Session::SetOpening(Chunk::Kind kind, ByteSpan private_data) {
  opening_.resize(kControlHeaderLength);
  Chunk{.kind = kind, .enhanced = enhanced_}.SerializeHeader(opening_);
  opening_.insert(opening_.end(), private_data.begin(), private_data.end());
  association_.Ready(*this);
}

size_t Session::max_ulpdu() const { return association_.options_.max_segment; }

bool Session::writable() const { return established_ && !ending_ && !association_.lost_; }

bool Session::HasRoom(size_t payload_length, size_t payload_pieces) const {
  return writable() && !payload_gone_ && (sender_ == nullptr || sender_->HasRoom(payload_length, payload_pieces));
}

void Session::Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) {
  const size_t length = header.size() + TotalLength(payload);
  // Section 9: "MUST reject DDP Segments that are larger than the maximum size specified".
  WEFT_CHECK(writable() && length != 0 && length <= max_ulpdu());
  if (sender_ == nullptr) sender_ = std::make_unique<SegmentSender>(association_.pool_);
  const uint64_t before = out_ + (opening_.empty() ? 0 : 1) + sender_->size();
  if (!sender_->Append(static_cast<uint16_t>(before), header, payload, volatile_payload)) return LosePayload();
  appended_ += kSsnLength + length;
  association_.Ready(*this);
}

void Session::TakeOver(const void* begin, size_t length, bool (*copy)(uint8_t*, const uint8_t*, size_t)) {
  if (sender_ != nullptr && !sender_->TakeOver(begin, length, copy)) LosePayload();
}

void Session::LosePayload() {
  sender_->Clear();
  appended_ = consumed_;
  payload_gone_ = true;
  association_.Tell(*this);
}

void Session::End() {
  if (ending_ || output_over() || state_ == SessionState::kRejected) return;
  if (state_ == SessionState::kInitiated && !opening_out_) {
    withdrawn_ = true;
    opening_.clear();
    return Ignore();
  }
  ending_ = true;
  if (state_ == SessionState::kRequested) {
    SetState(SessionState::kRefused);
    Ignore();
  }
  association_.Ready(*this);
}

void Session::SetSendLimit(uint64_t position) {
  const bool more = position > send_limit_;
  send_limit_ = position;
  if (more && has_output() && !output_over()) association_.Ready(*this);
}

void Session::Abort() {
  if (sender_ != nullptr) sender_->Clear();
  appended_ = consumed_;
  End();
}

bool Session::output_over() const {
  if (association_.lost_ || withdrawn_ || end_out_) return true;
  if (state_ == SessionState::kRejected) return active_ || opening_out_;
  return active_ && state_ == SessionState::kRefused;
}

bool Session::Next(Outgoing* outgoing) {
  if (output_over() || !has_output()) return false;
  if (consumed_ >= send_limit_) [[unlikely]] return false;
  if (Unacknowledged() >= association_.options_.most_unacknowledged) return false;
  *outgoing = {.stream = stream_, .ppid = kControlPpid, .pieces = {&piece_, 1}, .session = this};
  if (!opening_.empty()) {
    piece_ = {opening_.data(), opening_.size()};
  } else if (!empty()) {
    outgoing->ppid = kSegmentPpid;
    outgoing->pieces = sender_->Front();
    if (ThreadOfOurs() && !association_.CopyPayload(&outgoing->pieces)) {
      LosePayload();
      return false;
    }
    outgoing->length = sender_->FrontLength();
    outgoing->more = sender_->size() > 1;
    return true;
  } else {
    if (!MayTerminate()) return false;
    Chunk{.kind = Chunk::Kind::kTerminate, .ssn = static_cast<uint16_t>(out_)}.SerializeHeader(end_);
    piece_ = {end_.data(), end_.size()};
  }
  outgoing->length = piece_.iov_len;
  return true;
}

// Section 6.6: "MUST NOT be sent if it may be received before a prior DDP Stream Session Control message".
bool Session::MayTerminate() const {
  if (!opening_out_ || association_.acknowledged_ >= opening_ordinal_) return true;
  return active_ ? established_ : peer_has_answer_;
}

void Session::Took(uint64_t ordinal) {
  ++out_;
  last_ordinal_ = ordinal;
  if (mark_ <= association_.acknowledged_) {
    mark_ = ordinal;
    marked_ = out_;
  }
  if (!opening_.empty()) {
    opening_ = {};
    opening_out_ = true;
    opening_ordinal_ = ordinal;
  } else if (!empty()) {
    consumed_ += sender_->FrontLength();
    sender_->Pop();
  } else {
    end_out_ = true;
    sender_.reset();
  }
}

// An upper bound: which of them an acknowledgement of the association concerns is known of some only.
uint64_t Session::Unacknowledged() {
  const uint64_t known = association_.acknowledged_;
  if (known >= last_ordinal_) {
    acknowledged_ = out_;
  } else if (known >= mark_ && marked_ > acknowledged_) {
    acknowledged_ = marked_;
    mark_ = last_ordinal_;
    marked_ = out_;
  }
  return out_ - acknowledged_;
}

}  // namespace weft::ddp::sctp
