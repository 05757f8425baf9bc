#include "mpi_hybrid/p2p/engine/link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/copy.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/engine/pool.h"

namespace weft::mpi {
namespace {

// Read ahead of a large body that was asked for: its header, and small messages before it.
constexpr size_t kStagedBeforeBody = 4096;

// Whatever a peer says that it stores, so many bytes.
constexpr uint64_t kMostWindow = uint64_t{1} << 39;

}  // namespace

Link::Link(Engine& engine, ProcessId peer)
    : engine_(engine), peer_(peer), window_(static_cast<int64_t>(engine.limits().window)), credit_(window_) {}

std::string Link::Describe() const { return engine_.Describe(peer_); }

Link::~Link() {
  while (first_ != nullptr) {
    OutFrame* frame = std::exchange(first_, first_->next);
    if (frame->send == nullptr) Pool<OutFrame>::Give(frame);
  }
  // A note behind a goodbye, of which no more came. All else that arrives is the engine's.
  ForEachInbound([](Inbound& in) {
    if (in.message != nullptr && in.message->kind == FrameKind::kNote) in.message->Drop();
  });
}

void Link::UseStreams(size_t count) {
  streams_ = std::make_unique<Streams>();
  streams_->count = std::max<size_t>(count, 1);
}

size_t Link::StreamOf(uint32_t flow) const {
  if (flow == kControlFlow || streams_ == nullptr || streams_->count == 1) return 0;
  return 1 + (flow - 1) % (streams_->count - 1);
}

void Link::Open(uint64_t window) {
  state_ = State::kOpen;
  credit_ += static_cast<int64_t>(std::min(window, kMostWindow)) - window_;
}

void Link::OpenForeign(uint64_t window) {
  Open(window);
  state_ = State::kForeign;
  foreign_ = true;
}

bool Link::MaySay(const FrameHeader& header) const { return foreign_ || engine_.admits_foreign() || (header.flags & kFlagExternal) == 0; }

// --- out ---

void Link::AddCreditTo(FrameHeader& header) {
  header.credit = static_cast<uint32_t>(std::min<int64_t>(owed_, UINT32_MAX));
  owed_ -= header.credit;
  if (streams_ != nullptr && FrameHeader::IsMessage(header.kind))
    header.number = streams_->next_out[Arrivals::GroupOf(header.context)];
}

// A frame is begun: from now on the next message has the next number.
void Link::CountOut(FrameKind kind, uint32_t context) {
  ++streams_->frames_out;
  if (FrameHeader::IsMessage(kind)) ++streams_->next_out[Arrivals::GroupOf(context)];
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
  if (written != 0 && streams_ != nullptr) CountOut(header.kind, header.context);
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

void Link::SendControl(FrameHeader header, uint32_t flow) {
  OutFrame* frame = Pool<OutFrame>::Take();
  frame->flow = flow;
  frame->body = 0;
  frame->send = nullptr;
  Enqueue(*frame, header);
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

size_t Link::PrepareWrite(std::span<iovec> pieces, size_t most_frames) {
  size_t count = 0;
  if (streams_ != nullptr && first_ != nullptr) {
    most_frames = 1;  // the next may be of another stream
    // Only now: what is taken back before must not leave a gap.
    if (first_->header_written == 0 && FrameHeader::IsMessage(first_->kind)) {
      FrameHeader::SetNumber(first_->header, streams_->next_out[Arrivals::GroupOf(FrameHeader::ContextOf(first_->header))]);
    } else if (first_->header_written == 0 && first_->kind == FrameKind::kGoodbye) {
      FrameHeader::SetLength(first_->header, streams_->frames_out);
    }
  }
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

std::span<const uint8_t> Link::Offer() const {
  if (first_ == nullptr || first_->kind != FrameKind::kRequest || first_->header_written != 0 || first_is_out_) return {};
  const SendRequest& send = *first_->send;
  iovec piece[1];
  if (send.fine_grained.left() != 0 || send.payload.Peek(piece, send.length) != 1 || piece[0].iov_len != send.length) return {};
  return {static_cast<const uint8_t*>(piece[0].iov_base), piece[0].iov_len};
}

void Link::Written(size_t bytes) {
  while (bytes != 0) {
    OutFrame& frame = *first_;
    const size_t of_header = std::min<size_t>(bytes, sizeof(frame.header) - frame.header_written);
    if (frame.header_written == 0 && streams_ != nullptr) CountOut(frame.kind, FrameHeader::ContextOf(frame.header));
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

Link::Inbound& Link::InboundOf(size_t stream) {
  if (stream == 0) return first_in_;
  auto& all = streams_->inbound;
  if (stream > all.size()) all.resize(stream);
  if (all[stream - 1] == nullptr) all[stream - 1] = std::make_unique<Inbound>();
  return *all[stream - 1];
}

size_t Link::PrepareRead(std::span<iovec> pieces, std::span<uint8_t> staging, size_t stream) {
  const Inbound& in = InboundOf(stream);
  size_t count = 0;
  uint64_t left = in.in_body && !in.is_copied() ? in.place : 0;  // what is copied comes from the staging buffer
  if (left != 0) {
    if (in.receive != nullptr) {
      for (size_t more = in.receive->payload.Peek(pieces.first(pieces.size() - 1), left); more != 0; --more)
        left -= pieces[count++].iov_len;
    } else {
      pieces[count++] = {in.message->data + in.message->arrived, left};
      left = 0;
    }
  }
  // Behind pieces that do not reach to the end of the body nothing else may be read.
  // A body that was asked for is read to its place, not from the staging buffer.
  const size_t most = cleared != 0 && !in.in_body ? std::min(staging.size(), kStagedBeforeBody) : staging.size();
  if (left == 0) pieces[count++] = {staging.data(), most};
  return count;
}

bool Link::ReadDone(size_t bytes, std::span<const uint8_t> staging, size_t stream) {
  Inbound& in = InboundOf(stream);
  if (in.in_body && in.place != 0 && !in.is_copied()) {
    const size_t direct = static_cast<size_t>(std::min<uint64_t>(in.place, bytes));
    if (in.receive != nullptr) in.receive->payload.Advance(direct);
    OnBodyBytes(in, direct);
    bytes -= direct;
  }
  return ReadStaged(staging.first(bytes), stream);
}

bool Link::ReadStaged(std::span<const uint8_t> bytes, size_t stream) {
  Inbound& in = InboundOf(stream);
  while (!bytes.empty()) {
    if (in.in_body) {
      const size_t keep = static_cast<size_t>(std::min<uint64_t>(in.place, bytes.size()));
      if (keep != 0) {
        if (in.receive != nullptr) {
          in.receive->payload.Fill(bytes.first(keep));
        } else {
          CopyBytes(in.message->data + in.message->arrived, bytes.data(), keep);
        }
        bytes = bytes.subspan(keep);
        OnBodyBytes(in, keep);
        continue;
      }
      const size_t skip = static_cast<size_t>(std::min<uint64_t>(in.drop, bytes.size()));
      in.drop -= skip;
      bytes = bytes.subspan(skip);
      if (in.drop == 0) OnBodyEnd(in);
      continue;
    }
    const size_t take = std::min(bytes.size(), FrameHeader::kLength - in.header_have);
    std::memcpy(in.header_bytes + in.header_have, bytes.data(), take);
    in.header_have += take;
    bytes = bytes.subspan(take);
    if (in.header_have < FrameHeader::kLength) return true;
    in.header_have = 0;
    const std::optional<FrameHeader> header = FrameHeader::Parse(in.header_bytes, has_streams());
    if (!header || !MaySay(*header) || !OnHeader(in, *header)) return false;
    if (!header->has_body()) OnFrameEnd();
  }
  return true;
}

void Link::OnBodyBytes(Inbound& in, size_t bytes) {
  in.place -= bytes;
  if (in.message != nullptr) in.message->arrived += bytes;
  if (in.place == 0 && in.drop == 0) OnBodyEnd(in);
}

void Link::OnBodyEnd(Inbound& in) {
  in.in_body = false;
  ReceiveRequest* receive = std::exchange(in.receive, nullptr);
  Message* message = std::exchange(in.message, nullptr);
  if (message != nullptr) {
    engine_.FinishStored(*message);
  } else if (in.header.kind == FrameKind::kEager) {
    engine_.Finish(*receive);
  } else {
    receive->in_body = false;
    receive->expected -= in.header.length;
    if (receive->expected == 0) engine_.Finish(*receive);
  }
  OnFrameEnd();
}

void Link::OnFrameEnd() {
  if (streams_ == nullptr) return;
  ++streams_->frames_in;
  if (streams_->goodbye_after && streams_->frames_in > *streams_->goodbye_after) engine_.OnGone(peer_, /*left=*/true);
}

// What all frames have in common. False: it is not legal.
bool Link::Arrived(const FrameHeader& header) {
  credit_ += header.credit;
  if (credit_ > kMostCredit) return false;
  if (FrameHeader::IsMessage(header.kind)) {
    // Who has left sends no messages any more, and nobody would end one that began to arrive now. Answers and notes may follow a goodbye.
    if (is_gone()) return false;
    ++g_counters.messages_received;
    g_counters.bytes_received += header.length;
  }
  return true;
}

bool Link::OnHeader(Inbound& in, const FrameHeader& header) {
  if (!Arrived(header)) return false;
  switch (header.kind) {
    case FrameKind::kEager:
      return OnEager(in, header);
    case FrameKind::kRequest:
      return OnRequest(header);
    case FrameKind::kClear:
      return OnClear(header);
    case FrameKind::kData:
      return OnData(in, header);
    case FrameKind::kMatched:
      return OnMatched(header);
    case FrameKind::kCredit:
      return true;
    case FrameKind::kGoodbye:
      return OnGoodbye(header);
    case FrameKind::kCancel:
      return OnCancel(header);
    case FrameKind::kCancelled:
      return OnCancelled(header);
    case FrameKind::kRevoked:
      return OnRevoked(header);
    case FrameKind::kNote:
      return OnNote(in, header);
    case FrameKind::kFetched:
      return OnFetched(header);
  }
  return false;
}

bool Link::ReadRequest(std::span<const uint8_t> frame, uint64_t offer, uint64_t bytes) {
  if (frame.size() != FrameHeader::kLength || !is_between_frames()) return false;
  uint8_t copy[FrameHeader::kLength];
  std::memcpy(copy, frame.data(), sizeof(copy));
  const std::optional<FrameHeader> header = FrameHeader::Parse(copy);
  if (!header || !MaySay(*header) || header->kind != FrameKind::kRequest || header->length != bytes || !Arrived(*header)) return false;
  return OnRequest(*header, offer);
}

bool Link::TakeForPosted(std::span<const uint8_t> first, std::span<const uint8_t> rest) {
  if (first.size() < FrameHeader::kLength || !is_between_frames() || is_gone()) return false;
  uint8_t bytes[FrameHeader::kLength];
  std::memcpy(bytes, first.data(), sizeof(bytes));
  first = first.subspan(sizeof(bytes));
  EagerHeader header;
  if (!header.Parse(bytes) || header.length != first.size() + rest.size()) return false;
  const MatchKey envelope = {header.context, header.source, header.tag};
  ReceiveRequest* const receive = engine_.TakePostedIf(envelope, [&] { return TakeAtOnce(header.credit, header.length); });
  if (receive == nullptr) return false;
  receive->Matched(envelope, header.length, /*flags=*/0);
  receive->link = this;
  const size_t room = static_cast<size_t>(std::min(header.length, receive->capacity));
  const size_t of_first = std::min(first.size(), room);
  receive->payload.Fill(first.first(of_first));
  if (!rest.empty()) receive->payload.Fill(rest.first(std::min(rest.size(), room - of_first)));
  engine_.Finish(*receive);
  engine_.AfterInOrder(*this, header.context);
  return true;
}

// Over several streams it may overtake what was sent before it.
bool Link::OnGoodbye(const FrameHeader& header) {
  if (streams_ == nullptr) {
    engine_.OnGone(peer_, /*left=*/true);
  } else {
    streams_->goodbye_after = header.length;
  }
  return true;
}

bool Link::OnEager(Inbound& in, const FrameHeader& header) {
  if (header.length > engine_.limits().window) return false;
  Arrivals::Early turn;
  const auto when = streams_ == nullptr ? Arrivals::Kind::kNext : streams_->arrivals.Note(header.context, header.number, &turn);
  if (when == Arrivals::Kind::kWrong) return false;
  const bool early = when == Arrivals::Kind::kEarly;
  in.header = header;
  in.in_body = true;
  in.place = header.length;
  in.drop = 0;
  const MatchKey envelope = {header.context, header.source, header.tag};
  in.receive = early ? engine_.TakePostedForEarly(envelope) : engine_.TakePosted(envelope);
  if (in.receive == nullptr) {
    in.message = engine_.Store(header, *this, early ? &turn : nullptr);
    if (engine_.IsRevoked(header.context)) engine_.Refuse(*in.message, /*arrives=*/true);
  } else {
    in.receive->Matched(envelope, header.length, header.flags & kUnusualData);
    in.receive->stage = ReceiveRequest::Stage::kArriving;
    in.receive->link = this;
    in.place = std::min(header.length, in.receive->capacity);
    in.drop = header.length - in.place;
    GiveBack(CostOf(header.length));
    if (header.flags & kFlagSynchronous) SendControl({.kind = FrameKind::kMatched, .send_id = header.send_id});
  }
  if (header.length == 0) OnBodyEnd(in);
  if (!early) engine_.AfterInOrder(*this, header.context);
  return true;
}

bool Link::OnRequest(const FrameHeader& header, uint64_t offer) {
  Arrivals::Early turn;
  const auto when = streams_ == nullptr ? Arrivals::Kind::kNext : streams_->arrivals.Note(header.context, header.number, &turn);
  if (when == Arrivals::Kind::kWrong) return false;
  const bool early = when == Arrivals::Kind::kEarly;
  const MatchKey envelope = {header.context, header.source, header.tag};
  ReceiveRequest* receive = early ? engine_.TakePostedForEarly(envelope) : engine_.TakePosted(envelope);
  if (receive == nullptr) {
    Message* const message = engine_.Store(header, *this, early ? &turn : nullptr);
    message->offer = offer;
    if (engine_.IsRevoked(header.context)) engine_.Refuse(*message, /*arrives=*/false);
  } else {
    receive->Matched(envelope, header.length, header.flags & kUnusualData);
    engine_.Clear(*receive, *this, {.send_id = header.send_id, .length = header.length, .offer = offer});
  }
  if (!early) engine_.AfterInOrder(*this, header.context);
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

bool Link::OnData(Inbound& in, const FrameHeader& header) {
  ReceiveRequest* receive = engine_.ReceiveOf(*this, header.receive_id);
  if (receive == nullptr || header.length == 0 || header.length > receive->expected) return false;
  // The pieces of a message come on one stream, one after the other.
  if (std::exchange(receive->in_body, true)) return false;
  in.header = header;
  in.in_body = true;
  in.place = header.length;
  in.drop = 0;
  in.receive = receive;
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

// Only where it can have done so.
bool Link::OnFetched(const FrameHeader& header) {
  SendRequest* send = engine_.SendOf(*this, header.send_id);
  if (lane_ == nullptr || send == nullptr || send->stage != SendRequest::Stage::kAnnounced) return false;
  engine_.Finish(*send);
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

// Unless it is over: it may have been cancelled meanwhile.
bool Link::OnRevoked(const FrameHeader& header) {
  SendRequest* send = engine_.SendOf(*this, header.send_id);
  if (send == nullptr) return true;
  const Error error = Engine::RevokedError();
  if (send->stage == SendRequest::Stage::kAnnounced || send->stage == SendRequest::Stage::kMatching) {
    engine_.Fail(*send, error);
    return true;
  }
  // Refused by its header while the data are being written.
  if (send->stage != SendRequest::Stage::kQueued || !send->synchronous || send->frame.header_written < FrameHeader::kLength) return false;
  send->synchronous = false;
  send->error = error;
  return true;
}

bool Link::OnNote(Inbound& in, const FrameHeader& header) {
  if (header.length == 0 || header.length > Engine::kMostNote) return false;
  in.header = header;
  in.in_body = true;
  in.place = header.length;
  in.drop = 0;
  in.message = engine_.NewNote(header, *this);
  return true;
}

std::vector<SendRequest*> Link::TakeNotes() {
  std::vector<SendRequest*> notes;
  OutFrame* next = std::exchange(first_, nullptr);
  last_ = nullptr;
  while (next != nullptr) {
    OutFrame* frame = std::exchange(next, next->next);
    frame->next = nullptr;
    if (frame->kind == FrameKind::kNote) {
      notes.push_back(frame->send);
    } else {
      (last_ == nullptr ? first_ : last_->next) = frame;
      last_ = frame;
    }
  }
  return notes;
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
  ForEachInbound([&](Inbound& in) {
    if (!in.in_body) return;
    in.in_body = false;
    in.message = nullptr;  // the engine looks through them
    if (in.receive != nullptr) engine_.Fail(*std::exchange(in.receive, nullptr), error);
  });
}

}  // namespace weft::mpi
