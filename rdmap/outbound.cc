#include "rdmap/outbound.h"

#include "base/byte_writer.h"
#include "base/check.h"

namespace weft::rdmap {
namespace {

// Sequence numbers are compared modulo 2^32.
bool IsAfter(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

// Some peers refuse STag 0 even where the RFC says that it is not looked at.
constexpr ddp::STag kRtrStag{1};

// Reads that the wire does alone in one go; then others get their turn, and the peer is asked for the next.
constexpr unsigned kMostFetched = 16;

}  // namespace

Outbound::Outbound(uint32_t ord, Host& host, ReadQueues& reads, Termination& termination, DeliveryAccount& account)
    : host_(host), reads_(reads), termination_(termination), account_(account), ord_(ord), read_payload_(host, reads.inbound) {}

bool Outbound::Transmit(llp::UlpduWriter& out, bool only_terminate) {
  bool appended = false;
  response_payload_known_ = false;
  read_payload_.Forget();
  fetched_ = 0;
  if (!only_terminate && termination_.operational() && owes_delivery()) {
    appended = TransmitDelivery(out, false);
    if (resume_) return appended;  // what it announces must not overtake it
  }
  if (!termination_.operational()) AbandonRequest();
  while (termination_.operational() || (!only_terminate && Answering())) {
    if (only_terminate) return false;
    if (!segmenter_.active() && !StartMessage(out)) return appended;
    if (source_ == Source::kResponse && !FindResponsePayload()) break;
    // In front, so that the peer's program never hears our answer before it can hear that we have what it answers, if it waits for that.
    const uint8_t along = account_.wanted ? AcknowledgedAlong(out) : 0;
    if (!appended && account_.wanted && along == 0) appended = TransmitDelivery(out, true);
    if (target_owed_) [[unlikely]] {
      if (!AppendDelivery(out, {.kind = DeliveryMessage::Kind::kTarget, .sequence = request_->target})) return appended;
      appended = true;
      target_ = request_->target;
      target_owed_ = false;
    }
    const ddp::Segmenter::Progress progress = segmenter_.AppendTo(out, along);
    if (progress == ddp::Segmenter::Progress::kNoRoom) return appended;
    appended = true;
    if (along != 0) MarkAcknowledged();
    if (progress == ddp::Segmenter::Progress::kMessageDone) FinishMessage(out);
  }
  return TransmitTerminate(out) || appended;
}

bool Outbound::TransmitDelivery(llp::UlpduWriter& out, bool along) {
  if (!account_.reliable()) return false;
  bool appended = false;
  if (resume_) {
    if (!AppendDelivery(out, {.kind = DeliveryMessage::Kind::kResume, .sequence = acknowledged_ + 1})) return false;
    resume_ = false;
    appended = true;
  }
  if (account_.refused || greeting_ || (account_.owed() != 0 && (acknowledge_now_ || along))) {
    DeliveryMessage message{.sequence = account_.received};
    if (account_.refused) {
      message.kind = DeliveryMessage::Kind::kNotReady;
      message.timer = account_.timer;
      message.send_msn = account_.send_msn;
      message.read_msn = account_.read_msn;
    }
    if (!AppendDelivery(out, message)) return appended;
    account_.refused = greeting_ = false;
    MarkAcknowledged();
    appended = true;
  }
  acknowledge_now_ = false;
  return appended;
}

uint8_t Outbound::AcknowledgedAlong(const llp::UlpduWriter& out) const {
  if (!account_.reliable() || account_.refused || greeting_ || resume_ || target_owed_ || account_.owed() > UINT8_MAX) return 0;
  if (source_ == Source::kRequest && request_->opcode == Opcode::kWrite) return 0;  // it may be in the peer's memory before the peer hears of it
  if (!out.CarriesAcknowledgements()) return 0;
  return static_cast<uint8_t>(account_.owed());
}

void Outbound::MarkAcknowledged() {
  account_.acknowledged = account_.received;
  account_.wanted = false;
}

bool Outbound::AppendDelivery(llp::UlpduWriter& out, const DeliveryMessage& message) {
  std::array<uint8_t, DeliveryMessage::kLength> payload;  // NOLINT: filled by Serialize
  const iovec piece = {payload.data(), message.Serialize(payload)};
  if (!out.HasRoom(piece.iov_len, 1)) return false;
  ddp::UntaggedHeader header;
  header.last = true;
  header.rsvd_ulp = ControlByteOf(Opcode::kDelivery);
  header.queue = kDeliveryQueue;
  header.msn = ddp::Msn(0);
  std::array<uint8_t, ddp::UntaggedHeader::kLength> head;  // NOLINT: filled by Serialize
  header.Serialize(head);
  out.Append(head, {&piece, 1}, /*volatile_payload=*/true);
  return true;
}

bool Outbound::OnAcknowledged(uint32_t sequence) {
  if (IsAfter(heard_, sequence) || IsAfter(sequence, sent_sequence_)) return false;
  heard_ = sequence;
  if (!IsAfter(sequence, acknowledged_)) return true;
  ++account_.answers;
  acknowledged_ = sequence;
  OnTransmitted(transmitted_);
  return true;
}

bool Outbound::OnAcknowledgedAlong(uint8_t count) { return account_.reliable() && OnAcknowledged(heard_ + count); }

void Outbound::OnAnswered(uint32_t sequence) {
  if (!account_.reliable() || !IsAfter(sequence, acknowledged_)) return;
  acknowledged_ = sequence;
  OnTransmitted(transmitted_);
}

bool Outbound::OnNotReady(const DeliveryMessage& message) {
  if (stalled_ || resume_ || !OnAcknowledged(message.sequence) || acknowledged_ != message.sequence) return false;
  const uint32_t refused = acknowledged_ + 1;
  // Behind those that the peer has although the lower layer has not said yet that it took them.
  Request* last_kept = nullptr;
  Request* request = oldest_unsent_;
  while (request != nullptr && !IsAfter(request->sequence, acknowledged_)) {
    last_kept = request;
    request = request->next;
  }
  if (request == nullptr) request = request_;
  if (request == nullptr || IsAfter(refused, sent_sequence_)) return false;
  // The Write before its immediate data was carried out.
  request->write_done = request->has_immediate && request->opcode == Opcode::kWrite && request->sequence == refused;
  newest_unsent_ = last_kept;
  (last_kept == nullptr ? oldest_unsent_ : last_kept->next) = nullptr;
  // Reads behind it were dropped.
  while (!reads_.outstanding.empty() && reads_.outstanding.back().request != nullptr &&
         IsAfter(reads_.outstanding.back().request->sequence, acknowledged_)) {
    reads_.outstanding.PopBack();
  }
  if (source_ == Source::kRequest || source_ == Source::kImmediate) {
    segmenter_.Abandon();
    source_ = Source::kNone;
  }
  request_ = nullptr;
  target_owed_ = false;
  sent_sequence_ = acknowledged_;
  next_msn_[kSendQueue] = message.send_msn;
  next_msn_[kReadRequestQueue] = message.read_msn;
  stalled_ = true;
  ++account_.answers;
  host_.ReceiverNotReady(*request, message.timer);
  return true;
}

void Outbound::Resume() {
  if (!stalled_) return;
  stalled_ = false;
  resume_ = true;
}

bool Outbound::TransmitTerminate(llp::UlpduWriter& out) {
  if (termination_.state() != StreamState::kTerminating || terminate_end_position_ != 0) return false;
  if (source_ != Source::kTerminate) {
    TransmitDelivery(out, /*along=*/true);  // so that the peer knows which request it is about
    source_ = Source::kTerminate;
    request_ = nullptr;
    piece_ = {control_.data(), termination_.message()->Serialize(control_)};
    StartUntagged(Opcode::kTerminate, 0, {&piece_, 1}, static_cast<uint32_t>(piece_.iov_len), true);
  }
  bool appended = false;
  for (;;) {
    const ddp::Segmenter::Progress progress = segmenter_.AppendTo(out);
    if (progress == ddp::Segmenter::Progress::kNoRoom) return appended;
    appended = true;
    if (progress == ddp::Segmenter::Progress::kMessageDone) break;
  }
  source_ = Source::kNone;
  terminate_end_position_ = out.appended();
  return true;
}

bool Outbound::Answering() const {
  return account_.reliable() && termination_.state() == StreamState::kTerminating && source_ != Source::kTerminate &&
         terminate_end_position_ == 0 && !reads_.inbound.empty();
}

void Outbound::AbandonRequest() {
  if (source_ != Source::kRtr && source_ != Source::kRequest && source_ != Source::kImmediate) return;
  segmenter_.Abandon();
  source_ = Source::kNone;
  request_ = nullptr;
  target_owed_ = false;
}

void Outbound::DropAnswersFrom(uint32_t index) {
  while (reads_.inbound.size() > index) reads_.inbound.PopBack();
  read_payload_.Forget();
  if (index != 0 || source_ != Source::kResponse) return;
  segmenter_.Abandon();
  source_ = Source::kNone;
}

bool Outbound::StartMessage(llp::UlpduWriter& out) {
  if (!termination_.operational()) {
    StartResponse();
    return true;
  }
  if (rtr_ != llp::Rtr::kNone) {
    StartRtr();
    return true;
  }
  const bool response = !reads_.inbound.empty();
  if (response && response_next_) {
    StartResponse();
    return true;
  }
  while (Request* request = NextReady()) {
    if (FetchByOurselves(*request, out)) continue;
    StartRequest(*request);
    return true;
  }
  if (response) StartResponse();
  return response;
}

// The peer never hears of it: it has no number. Not past a Read or an atomic that is not answered yet.
bool Outbound::FetchByOurselves(Request& request, llp::UlpduWriter& out) {
  if (request.opcode != Opcode::kReadRequest || request.length == 0) return false;
  if (!account_.reliable() || account_.targeted || !reads_.outstanding.empty() || fetched_ == kMostFetched) return false;
  if (!out.Fetch(request.remote_stag.value, request.remote_offset.value, request.local, request.length, request.alone)) return false;
  ++fetched_;
  host_.Started(request);
  ++account_.answers;
  OnAnswered(sent_sequence_);
  host_.Fetched(request);
  host_.ReadDone(request);
  return true;
}

Request* Outbound::NextReady() const {
  if (stalled_) return nullptr;
  Request* const request = host_.NextRequest();
  if (request == nullptr) return nullptr;
  const uint32_t outstanding = reads_.outstanding.size();
  const bool answered = request->opcode == Opcode::kReadRequest || request->opcode == Opcode::kAtomicRequest;
  if (answered && outstanding >= ord_) return nullptr;
  if (request->fence && outstanding != 0) return nullptr;
  return request;
}

void Outbound::StartRtr() {
  source_ = Source::kRtr;
  switch (rtr_) {
    case llp::Rtr::kNone:
      break;
    case llp::Rtr::kSend:
      return StartUntagged(Opcode::kSend, 0, {}, 0, false);
    case llp::Rtr::kWrite:
      return StartTagged(Opcode::kWrite, kRtrStag, ddp::TaggedOffset(0), {}, 0, false);
    case llp::Rtr::kRead:
      return StartReadRequest({kRtrStag, ddp::TaggedOffset(0), 0, kRtrStag, ddp::TaggedOffset(0)});
  }
  WEFT_CHECK(false);
}

void Outbound::StartResponse() {
  source_ = Source::kResponse;
  response_next_ = false;
  response_payload_known_ = false;
  if (reads_.inbound.front().is_atomic) {
    piece_ = {control_.data(), reads_.inbound.front().atomic.Serialize(control_)};
    return StartUntagged(Opcode::kAtomicResponse, 0, {&piece_, 1}, AtomicResponseHeader::kLength, true);
  }
  const ReadRequestHeader& read = reads_.inbound.front().header;
  StartTagged(Opcode::kReadResponse, read.sink_stag, read.sink_offset, {}, read.length, false);
}

bool Outbound::FindResponsePayload() {
  if (response_payload_known_ || reads_.inbound.front().is_atomic) return true;
  const InboundRead& read = reads_.inbound.front();
  const uint32_t left = segmenter_.remaining();
  // Asked anew in each call of Transmit: the region may have gone since.
  if (left != 0) {
    if (account_.targeted) {
      account_.target_selected = false;  // the next request's may be another
      if (!host_.SelectTarget(read.target)) return RefuseRead(AccessError::kInvalidStag);
    }
    const auto rest = read_payload_.Find(left, /*alone=*/account_.targeted);
    if (!rest) return RefuseRead(rest.error());
    piece_ = {rest->bytes, left};
    segmenter_.ReplacePayload({&piece_, 1}, rest->ours);
  }
  response_payload_known_ = true;
  return true;
}

bool Outbound::RefuseRead(AccessError error) {
  const InboundRead& read = reads_.inbound.front();
  termination_.Fail(Explain(ReadError(error), read, read.header.length - segmenter_.remaining()));
  DropAnswersFrom(0);
  return false;
}

void Outbound::StartRequest(Request& request) {
  source_ = Source::kRequest;
  response_next_ = true;
  request_ = &request;
  host_.Started(request);
  request.sequence = ++sent_sequence_;
  target_owed_ = request.target != target_ && account_.reliable();
  switch (request.opcode) {
    case Opcode::kWrite:
      if (request.has_immediate) {
        if (request.write_done) return StartImmediate();
        request.sequence = ++sent_sequence_;
      }
      return StartTagged(Opcode::kWrite, request.remote_stag, request.remote_offset, request.local, request.length,
                         request.volatile_local, request.has_immediate);
    case Opcode::kReadRequest:
      return StartReadRequest(
          {request.sink_stag, request.sink_offset, request.length, request.remote_stag, request.remote_offset});
    case Opcode::kSend:
    case Opcode::kSendSolicited:
    case Opcode::kSendInvalidate:
    case Opcode::kSendSolicitedInvalidate:
      return StartSend(request);
    case Opcode::kAtomicRequest:
      return StartAtomicRequest(request);
    case Opcode::kReadResponse:
    case Opcode::kTerminate:
    case Opcode::kImmediate:
    case Opcode::kImmediateSolicited:
    case Opcode::kAtomicResponse:
    case Opcode::kDelivery:
      break;
  }
  WEFT_CHECK(false);  // not a work request
}

void Outbound::StartSend(const Request& request) {
  const bool invalidates = FindOpcode(request.opcode)->invalidates;
  const uint32_t word = invalidates ? request.invalidate_stag.value : request.has_immediate ? request.immediate : 0;
  StartUntagged(request.opcode, word, request.local, request.length, request.volatile_local, request.has_immediate);
}

void Outbound::StartAtomicRequest(const Request& request) {
  AtomicRequestHeader header;
  header.operation.code = request.atomic_code;
  header.operation.add_or_swap = request.add_or_swap;
  if (request.atomic_code == AtomicCode::kFetchAdd) header.operation.add_or_swap_mask = 0;  // one field of 64 bits
  header.operation.compare = request.compare;
  header.identifier = request.sequence;
  header.stag = request.remote_stag;
  header.offset = request.remote_offset;
  piece_ = {control_.data(), header.Serialize(control_)};
  StartUntagged(Opcode::kAtomicRequest, 0, {&piece_, 1}, AtomicRequestHeader::kLength, true);
}

void Outbound::StartImmediate() {
  source_ = Source::kImmediate;
  ByteWriter writer(control_);
  writer.U32(request_->immediate);
  writer.U32(0);
  piece_ = {control_.data(), kImmediateLength};
  StartUntagged(request_->solicited ? Opcode::kImmediateSolicited : Opcode::kImmediate, 0, {&piece_, 1}, kImmediateLength, true);
}

void Outbound::StartReadRequest(const ReadRequestHeader& header) {
  piece_ = {control_.data(), header.Serialize(control_)};
  StartUntagged(Opcode::kReadRequest, 0, {&piece_, 1}, ReadRequestHeader::kLength, true);
}

// Reads and atomics have their answers; of a Write with immediate data only the latter asks.
bool Outbound::Asks() const {
  if (!account_.reliable() || (source_ != Source::kRequest && source_ != Source::kImmediate) || !request_->acknowledge) return false;
  switch (request_->opcode) {
    case Opcode::kReadRequest:
    case Opcode::kAtomicRequest:
      return false;
    default:
      return source_ == Source::kImmediate || !(request_->opcode == Opcode::kWrite && request_->has_immediate);
  }
}

void Outbound::StartTagged(Opcode opcode, ddp::STag stag, ddp::TaggedOffset offset, std::span<const iovec> payload,
                           uint32_t length, bool volatile_payload, bool immediate) {
  ddp::TaggedHeader header;
  header.rsvd_ulp = ControlByteOf(opcode, immediate, Asks());
  header.stag = stag;
  header.offset = offset;
  segmenter_.Start(header, payload, length, volatile_payload);
}

void Outbound::StartUntagged(Opcode opcode, uint32_t word, std::span<const iovec> payload, uint32_t length,
                             bool volatile_payload, bool immediate) {
  ddp::UntaggedHeader header;
  header.rsvd_ulp = ControlByteOf(opcode, immediate, Asks());
  header.rsvd_ulp_word = word;
  header.queue = FindOpcode(opcode)->queue;
  ddp::Msn& msn = next_msn_[header.queue];
  header.msn = msn;
  msn = ddp::Msn(msn.value + 1);
  segmenter_.Start(header, payload, length, volatile_payload);
}

bool Outbound::ends_when_placed() const {
  return account_.reliable() && source_ == Source::kRequest && request_->opcode == Opcode::kWrite && !request_->has_immediate &&
         request_->sequence == acknowledged_ + 1;
}

void Outbound::AcceptOurselves() {
  acknowledged_ = request_->sequence;
  ++account_.answers;
}

void Outbound::FinishMessage(const llp::UlpduWriter& out) {
  switch (source_) {
    case Source::kRtr:
      if (rtr_ == llp::Rtr::kRead) reads_.outstanding.Push({nullptr, 0});
      rtr_ = llp::Rtr::kNone;
      break;
    case Source::kResponse:
      reads_.inbound.Pop();
      break;
    case Source::kRequest:
      if (request_->opcode == Opcode::kWrite && request_->has_immediate) return StartImmediate();
      [[fallthrough]];
    case Source::kImmediate:
      if (out.placed() && ends_when_placed()) AcceptOurselves();
      request_->end_position = out.appended();
      if (request_->opcode == Opcode::kReadRequest || request_->opcode == Opcode::kAtomicRequest) {
        reads_.outstanding.Push({request_, 0});
      } else {
        request_->next = nullptr;
        (oldest_unsent_ == nullptr ? oldest_unsent_ : newest_unsent_->next) = request_;
        newest_unsent_ = request_;
      }
      request_ = nullptr;
      break;
    case Source::kNone:
    case Source::kTerminate:
      break;
  }
  source_ = Source::kNone;
}

void Outbound::OnTransmitted(uint64_t position) {
  transmitted_ = position;
  while (termination_.operational() && oldest_unsent_ != nullptr && oldest_unsent_->end_position <= position) {
    if (account_.reliable() && IsAfter(oldest_unsent_->sequence, acknowledged_)) return;
    Request* const request = oldest_unsent_;
    oldest_unsent_ = request->next;  // before the host reuses it
    host_.Sent(*request);
  }
}

bool Outbound::HasWork(bool only_terminate) const {
  return HasWorkBesideRequests(only_terminate) || (termination_.operational() && !only_terminate && NextReady() != nullptr);
}

bool Outbound::HasWorkBesideRequests(bool only_terminate) const {
  switch (termination_.state()) {
    case StreamState::kTerminated:
      return false;
    case StreamState::kTerminating:
      return terminate_end_position_ == 0;
    case StreamState::kOperational:
      break;
  }
  if (only_terminate) return false;
  return segmenter_.active() || owes_delivery() || rtr_ != llp::Rtr::kNone || !reads_.inbound.empty();
}

bool Outbound::Forget(ddp::STag stag) {
  if (!termination_.operational() && !Answering()) return false;  // nothing is touched any more
  for (uint32_t i = 0; i < reads_.inbound.size(); ++i) {
    const InboundRead& read = reads_.inbound[i];
    const bool under_way = i == 0 && source_ == Source::kResponse;
    if (read.is_atomic) continue;
    const uint32_t left = under_way ? segmenter_.remaining() : read.header.length;
    if (left == 0 || read.header.source_stag != stag) continue;
    termination_.Fail(Explain(Error::kInvalidStag, read, read.header.length - left));
    DropAnswersFrom(i);
    return true;
  }
  if (!termination_.operational()) return false;
  const auto sinks_into = [stag](const Request* request) {
    return request != nullptr && request->opcode == Opcode::kReadRequest && request->length != 0 &&
           request->sink_stag == stag;
  };
  bool used = sinks_into(request_);
  for (uint32_t i = 0; i < reads_.outstanding.size(); ++i) used |= sinks_into(reads_.outstanding[i].request);
  if (used) termination_.Fail(Explain(Error::kInvalidStag));
  return used;
}

}  // namespace weft::rdmap
