#include "mpi_hybrid/p2p/engine/link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/engine/pool.h"

namespace weft::mpi {
namespace {

// Read ahead of a large body that was asked for: its header, and small messages before it.
constexpr size_t kStagedBeforeBody = 4096;

// Whatever a peer says that it stores, so many bytes; and it cannot give back more than was taken.
constexpr uint64_t kMostWindow = uint64_t{1} << 39;
constexpr int64_t kMostCredit = int64_t{1} << 40;

}  // namespace

Link::Link(Engine& engine, ProcessId peer)
    : engine_(engine), peer_(peer), credit_(static_cast<int64_t>(engine.limits().window)) {}

Link::~Link() {
  while (first_ != nullptr) {
    OutFrame* frame = std::exchange(first_, first_->next);
    if (frame->send == nullptr) Pool<OutFrame>::Give(frame);
  }
}

void Link::Open(uint64_t window) {
  state_ = State::kOpen;
  credit_ += static_cast<int64_t>(std::min(window, kMostWindow)) - static_cast<int64_t>(engine_.limits().window);
}

// --- out ---

void Link::AddCreditTo(FrameHeader& header) {
  header.credit = static_cast<uint32_t>(std::min<int64_t>(owed_, UINT32_MAX));
  owed_ -= header.credit;
}

void Link::Enqueue(OutFrame& frame, const FrameHeader& header) {
  FrameHeader out = header;
  AddCreditTo(out);
  EnqueueRest(frame, out, 0);
}

void Link::EnqueueRest(OutFrame& frame, const FrameHeader& header, size_t written) {
  header.SerializeTo(frame.header);
  frame.kind = header.kind;
  frame.header_written = static_cast<uint32_t>(std::min(written, sizeof(frame.header)));
  frame.next = nullptr;
  if (first_ == nullptr) {
    first_ = &frame;
    engine_.OnOutput(*this);
  } else {
    last_->next = &frame;
  }
  last_ = &frame;
}

bool Link::Dequeue(OutFrame& frame) {
  OutFrame* previous = nullptr;
  for (OutFrame* at = first_; at != nullptr; previous = at, at = at->next) {
    if (at != &frame) continue;
    if (frame.header_written != 0 || (previous == nullptr && first_is_out_)) return false;
    (previous == nullptr ? first_ : previous->next) = frame.next;
    if (last_ == &frame) last_ = previous;
    owed_ += FrameHeader::CreditOf(frame.header);
    return true;
  }
  return false;
}

void Link::SendControl(FrameHeader header) {
  OutFrame* frame = Pool<OutFrame>::Take();
  frame->body = 0;
  frame->send = nullptr;
  Enqueue(*frame, header);
}

void Link::GiveBack(int64_t credit) {
  if (is_gone()) return;
  owed_ += credit;
  if (owed_ * 2 > static_cast<int64_t>(engine_.limits().window)) SendControl({.kind = FrameKind::kCredit});
}

void Link::Stream(SendRequest& send) {
  constexpr size_t kPackedChunk = 256 * 1024;
  size_t chunk = std::min(send.stream_left, engine_.limits().chunk);
  if (send.fine_grained.left() != 0) chunk = std::min(chunk, kPackedChunk);
  send.stream_left -= chunk;
  send.PackNext(chunk);
  send.frame.send = &send;
  send.frame.body = chunk;
  Enqueue(send.frame, {.kind = FrameKind::kData, .receive_id = send.stream_to, .length = chunk});
}

size_t Link::PrepareWrite(std::span<iovec> pieces, size_t most_frames) const {
  size_t count = 0;
  for (OutFrame* frame = first_; frame != nullptr && count < pieces.size() && most_frames != 0; frame = frame->next, --most_frames) {
    if (frame->header_written < sizeof(frame->header)) {
      pieces[count++] = {frame->header + frame->header_written, sizeof(frame->header) - frame->header_written};
    }
    if (frame->body == 0) continue;
    size_t left = frame->body;
    for (size_t more = frame->send->payload.Peek(pieces.subspan(count), left); more != 0; --more) left -= pieces[count++].iov_len;
    if (left != 0) break;
  }
  return count;
}

void Link::Written(size_t bytes) {
  while (bytes != 0) {
    OutFrame& frame = *first_;
    const size_t of_header = std::min<size_t>(bytes, sizeof(frame.header) - frame.header_written);
    frame.header_written += static_cast<uint32_t>(of_header);
    bytes -= of_header;
    const size_t of_body = std::min(bytes, frame.body);
    if (of_body != 0) frame.send->payload.Advance(of_body);
    frame.body -= of_body;
    bytes -= of_body;
    if (frame.header_written < sizeof(frame.header) || frame.body != 0) return;
    first_ = frame.next;
    if (first_ == nullptr) last_ = nullptr;
    FrameWritten(frame);
  }
}

void Link::FrameWritten(OutFrame& frame) {
  if (frame.send == nullptr) {
    Pool<OutFrame>::Give(&frame);
    return;
  }
  SendRequest& send = *frame.send;
  switch (frame.kind) {
    case FrameKind::kEager:
      if (send.synchronous) {
        send.stage = SendRequest::Stage::kMatching;
      } else {
        engine_.Finish(send);
      }
      break;
    case FrameKind::kRequest:
      send.stage = SendRequest::Stage::kAnnounced;
      break;
    default:
      if (send.stream_left != 0) {
        Stream(send);
      } else {
        engine_.Finish(send);
      }
  }
}

// --- in ---

size_t Link::PrepareRead(std::span<iovec> pieces, std::span<uint8_t> staging) const {
  size_t count = 0;
  uint64_t left = in_body_ ? place_ : 0;
  if (receive_ != nullptr && receive_->payload.fine_grained()) left = 0;  // they are copied from the staging buffer
  if (left != 0) {
    if (receive_ != nullptr) {
      for (size_t more = receive_->payload.Peek(pieces.first(pieces.size() - 1), left); more != 0; --more) left -= pieces[count++].iov_len;
    } else {
      pieces[count++] = {message_->data + message_->arrived, left};
      left = 0;
    }
  }
  // Behind pieces that do not reach to the end of the body nothing else may be read.
  // A body that was asked for is read to its place, not from the staging buffer.
  const size_t most = cleared != 0 && !in_body_ ? std::min(staging.size(), kStagedBeforeBody) : staging.size();
  if (left == 0) pieces[count++] = {staging.data(), most};
  return count;
}

bool Link::ReadDone(size_t bytes, std::span<const uint8_t> staging) {
  if (in_body_ && place_ != 0 && !(receive_ != nullptr && receive_->payload.fine_grained())) {
    const size_t direct = static_cast<size_t>(std::min<uint64_t>(place_, bytes));
    if (receive_ != nullptr) receive_->payload.Advance(direct);
    OnBodyBytes(direct);
    bytes -= direct;
  }
  return ReadStaged(staging.first(bytes));
}

bool Link::ReadStaged(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (in_body_) {
      const size_t keep = static_cast<size_t>(std::min<uint64_t>(place_, bytes.size()));
      if (keep != 0) {
        if (receive_ != nullptr) {
          receive_->payload.Fill(bytes.first(keep));
        } else {
          std::memcpy(message_->data + message_->arrived, bytes.data(), keep);
        }
        bytes = bytes.subspan(keep);
        OnBodyBytes(keep);
        continue;
      }
      const size_t skip = static_cast<size_t>(std::min<uint64_t>(drop_, bytes.size()));
      drop_ -= skip;
      bytes = bytes.subspan(skip);
      if (drop_ == 0) OnBodyEnd();
      continue;
    }
    const size_t take = std::min(bytes.size(), FrameHeader::kLength - header_have_);
    std::memcpy(header_ + header_have_, bytes.data(), take);
    header_have_ += take;
    bytes = bytes.subspan(take);
    if (header_have_ < FrameHeader::kLength) return true;
    header_have_ = 0;
    const std::optional<FrameHeader> header = FrameHeader::Parse(header_);
    if (!header || !OnHeader(*header)) return false;
  }
  return true;
}

void Link::OnBodyBytes(size_t bytes) {
  place_ -= bytes;
  if (message_ != nullptr) message_->arrived += bytes;
  if (place_ == 0 && drop_ == 0) OnBodyEnd();
}

void Link::OnBodyEnd() {
  in_body_ = false;
  ReceiveRequest* receive = std::exchange(receive_, nullptr);
  Message* message = std::exchange(message_, nullptr);
  if (message != nullptr) {
    engine_.FinishStored(*message);
  } else if (in_.kind == FrameKind::kEager) {
    engine_.Finish(*receive);
  } else {
    receive->expected -= in_.length;
    if (receive->expected == 0) engine_.Finish(*receive);
  }
}

bool Link::OnHeader(const FrameHeader& header) {
  credit_ += header.credit;
  if (credit_ > kMostCredit) return false;
  if (header.kind == FrameKind::kEager || header.kind == FrameKind::kRequest) {
    ++g_counters.messages_received;
    g_counters.bytes_received += header.length;
  }
  switch (header.kind) {
    case FrameKind::kEager:
      return OnEager(header);
    case FrameKind::kRequest:
      return OnRequest(header);
    case FrameKind::kClear:
      return OnClear(header);
    case FrameKind::kData:
      return OnData(header);
    case FrameKind::kMatched:
      return OnMatched(header);
    case FrameKind::kCredit:
      return true;
    case FrameKind::kGoodbye:
      engine_.OnGone(peer_, /*left=*/true);
      return true;
    case FrameKind::kCancel:
      return OnCancel(header);
    case FrameKind::kCancelled:
      return OnCancelled(header);
  }
  return false;
}

bool Link::OnEager(const FrameHeader& header) {
  if (header.length > engine_.limits().window) return false;
  in_ = header;
  in_body_ = true;
  place_ = header.length;
  drop_ = 0;
  const MatchKey envelope = {header.context, header.source, header.tag};
  receive_ = engine_.TakePosted(envelope);
  if (receive_ == nullptr) {
    message_ = engine_.Store(header, *this);
  } else {
    receive_->Matched(envelope, header.length);
    receive_->stage = ReceiveRequest::Stage::kArriving;
    receive_->link = this;
    place_ = std::min(header.length, receive_->capacity);
    drop_ = header.length - place_;
    GiveBack(CostOf(header.length));
    if (header.flags & kFlagSynchronous) SendControl({.kind = FrameKind::kMatched, .send_id = header.send_id});
  }
  if (header.length == 0) OnBodyEnd();
  return true;
}

bool Link::OnRequest(const FrameHeader& header) {
  const MatchKey envelope = {header.context, header.source, header.tag};
  ReceiveRequest* receive = engine_.TakePosted(envelope);
  if (receive == nullptr) {
    engine_.Store(header, *this);
  } else {
    receive->Matched(envelope, header.length);
    engine_.Clear(*receive, *this, header.send_id, header.length);
  }
  return true;
}

bool Link::OnClear(const FrameHeader& header) {
  SendRequest* send = engine_.SendOf(*this, header.send_id);
  if (send == nullptr || send->stage != SendRequest::Stage::kAnnounced || header.length > send->length) return false;
  send->stage = SendRequest::Stage::kStreaming;
  if (header.length == 0) {
    engine_.Finish(*send);
    return true;
  }
  send->stream_to = header.receive_id;
  send->stream_left = header.length;
  Stream(*send);
  return true;
}

bool Link::OnData(const FrameHeader& header) {
  ReceiveRequest* receive = engine_.ReceiveOf(*this, header.receive_id);
  if (receive == nullptr || header.length == 0 || header.length > receive->expected) return false;
  in_ = header;
  in_body_ = true;
  place_ = header.length;
  drop_ = 0;
  receive_ = receive;
  return true;
}

bool Link::OnMatched(const FrameHeader& header) {
  SendRequest* send = engine_.SendOf(*this, header.send_id);
  if (send == nullptr || !send->synchronous) return false;
  if (send->stage == SendRequest::Stage::kMatching) {
    engine_.Finish(*send);
    return true;
  }
  // Matched by its header while the data are being written.
  if (send->stage != SendRequest::Stage::kQueued || send->frame.header_written < FrameHeader::kLength) return false;
  send->synchronous = false;
  return true;
}

bool Link::OnCancel(const FrameHeader& header) {
  const bool withdrawn = engine_.WithdrawRequest(*this, header.send_id);
  SendControl({.kind = FrameKind::kCancelled, .flags = withdrawn ? uint8_t{0} : kFlagRefused, .send_id = header.send_id});
  return true;
}

bool Link::OnCancelled(const FrameHeader& header) {
  if (header.flags & kFlagRefused) return true;  // it was or will be received
  SendRequest* send = engine_.SendOf(*this, header.send_id);
  if (send == nullptr || !send->cancelling ||
      (send->stage != SendRequest::Stage::kAnnounced && send->stage != SendRequest::Stage::kMatching)) {
    return false;
  }
  engine_.FinishCancelled(*send);
  return true;
}

void Link::Abandon(const Error& error) {
  OutFrame* next = std::exchange(first_, nullptr);
  last_ = nullptr;
  first_is_out_ = false;
  while (next != nullptr) {
    OutFrame* frame = std::exchange(next, next->next);
    if (frame->send == nullptr) {
      Pool<OutFrame>::Give(frame);
    } else {
      engine_.Fail(*frame->send, error);
    }
  }
  if (!in_body_) return;
  in_body_ = false;
  message_ = nullptr;  // the engine looks through them
  if (receive_ != nullptr) engine_.Fail(*std::exchange(receive_, nullptr), error);
}

}  // namespace weft::mpi
