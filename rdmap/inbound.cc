#include "rdmap/inbound.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/program_memory.h"
#include "rdmap/outbound.h"

namespace weft::rdmap {

Inbound::Inbound(llp::Rtr expected_rtr, bool scatter_reads, Host& host, ReadQueues& reads, Termination& termination,
                 DeliveryAccount& account, Outbound& outbound)
    : host_(host),
      reads_(reads),
      termination_(termination),
      account_(account),
      outbound_(outbound),
      scatter_reads_(scatter_reads),
      awaiting_rtr_(expected_rtr != llp::Rtr::kNone),
      expected_rtr_(expected_rtr) {}

bool Inbound::Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) {
  if (!termination_.operational() || unplaceable_) return false;
  WEFT_CHECK(!in_segment_ && head.size() <= length && length <= llp::kLongestUlpdu);
  segment_.Capture(length, head);
  payload_length_ = 0;
  dropped_ = false;
  if (plan->acknowledged != 0 && !outbound_.OnAcknowledgedAlong(plan->acknowledged)) return Fail(Error::kUnspecifiedOperation);

  if (IsWholeSend(head)) [[likely]] return in_segment_ = BeginWholeSend(head, plan);
  const bool tagged = !head.empty() && ddp::ControlField::Parse(head[0]).tagged;
  const bool accepted = tagged ? BeginTagged(head, plan) : BeginUntagged(head, plan);
  in_segment_ = accepted;
  return accepted;
}

// A plain Send in one segment, as most are short, on a stream on which nothing else is to be seen to.
bool Inbound::IsWholeSend(ByteSpan head) const {
  constexpr uint8_t kAcknowledge = ControlByte{.acknowledge = true}.Serialize() ^ ControlByte{}.Serialize();
  constexpr uint8_t kUntaggedAndLast = ddp::ControlField{.tagged = false, .last = true}.Serialize();
  if (head.size() < ddp::UntaggedHeader::kLength || head[0] != kUntaggedAndLast) return false;
  if ((head[1] & ~kAcknowledge) != ControlByteOf(Opcode::kSend)) return false;
  const ddp::UntaggedQueue& queue = queues_[kSendQueue];
  if (awaiting_rtr_ || account_.dropping || account_.targeted || queue.message_open()) return false;
  ByteReader reader(head.subspan(2 + sizeof(uint32_t)));  // behind what DDP reserves for its ULP
  return reader.U64() == (uint64_t{kSendQueue} << 32 | queue.next_msn().value) && reader.U32() == 0;  // QN, MSN; MO
}

bool Inbound::BeginWholeSend(ByteSpan head, llp::UlpduPlan* plan) {
  info_ = open_send_ = FindOpcode(Opcode::kSend);
  acknowledge_ = ControlByte::Parse(head[1]).acknowledge;
  last_ = true;
  swallow_rtr_ = unplaced_send_ = has_immediate_ = false;
  word_ = 0;
  payload_length_ = segment_.length - ddp::UntaggedHeader::kLength;
  plan->header_length = ddp::UntaggedHeader::kLength;
  plan->payload = {};
  receive_ = {};
  if (!TakeReceive(payload_length_, plan)) return dropped_;
  receive_cursor_ = ddp::IovecCursor(receive_.memory);
  return PlaceSend(plan);
}

bool Inbound::BeginTagged(ByteSpan head, llp::UlpduPlan* plan) {
  const auto header = ddp::TaggedHeader::Parse(head);
  if (!header) {
    // No error number says "shorter than its header"; it is as unspecified as an error can be.
    return header.error() == ddp::HeaderError::kBadVersion ? Fail(ddp::Error::kTaggedInvalidVersion)
                                                           : Fail(Error::kUnspecifiedOperation);
  }
  info_ = CheckOpcode(header->rsvd_ulp, /*tagged=*/true, /*queue=*/0);
  if (info_ == nullptr) return false;
  last_ = header->last;
  payload_length_ = segment_.length - ddp::TaggedHeader::kLength;
  plan->header_length = ddp::TaggedHeader::kLength;
  plan->payload = {};
  if (info_->handler == Handler::kReadResponse) {
    if (!BeginReadResponse(*header)) return false;
    return scatter_reads_ ? Scatter(plan) : Place(*header, Access::kReadSink, plan);
  }
  if (account_.dropping) return Drop(plan);
  if (!SelectTarget()) return false;
  if (!tagged_open_) write_length_ = 0;
  // Whoever has seen it in his memory may have taken that away since.
  if (plan->placed) return true;
  return Place(*header, Access::kRemoteWrite, plan);
}

bool Inbound::SelectNewTarget() {
  if (awaiting_rtr_ && account_.target == 0) return true;  // the RTR is for nobody
  account_.target_selected = host_.SelectTarget(account_.target);
  return account_.target_selected || Fail(ddp::Error::kInvalidQueue);
}

bool Inbound::Drop(llp::UlpduPlan* plan) {
  dropped_ = true;
  plan->discard = true;
  return true;
}

// A Read's data to where the request wants them.
bool Inbound::Scatter(llp::UlpduPlan* plan) {
  if (payload_length_ == 0) return true;
  const OutstandingRead& read = reads_.outstanding.front();
  if (read.received == 0) read_cursor_ = ddp::IovecCursor(read.request->local);
  size_t pieces = 0;
  const size_t taken = read_cursor_.Take(payload_length_, pieces_, &pieces);
  WEFT_CHECK(taken == payload_length_);  // BeginReadResponse() has compared the lengths; a request has at most kMaxPieces pieces
  plan->payload = std::span<const iovec>(pieces_).first(pieces);
  return true;
}

bool Inbound::Place(const ddp::TaggedHeader& header, Access access, llp::UlpduPlan* plan) {
  // "The STag and TO fields MUST NOT be checked for a zero-length Tagged DDP Message", RFC 5041 section 5.2.
  if (payload_length_ == 0) return true;
  const bool has_immediate = access == Access::kRemoteWrite && account_.reliable() && ControlByte::Parse(header.rsvd_ulp).immediate;
  if (header.offset.value + payload_length_ < header.offset.value) {
    if (has_immediate) host_.WriteRefused();
    return Fail(ddp::Error::kOffsetWrap);
  }
  const auto memory = host_.Resolve(header.stag, header.offset, payload_length_, access);
  if (!memory) {
    if (has_immediate) host_.WriteRefused();
    if (account_.mode != Delivery::kUnreliable || access != Access::kRemoteWrite) return Fail(PlacementError(memory.error()));
    plan->discard = true;
    return true;
  }
  placing_ = header.stag;
  // A Write without immediate data becomes visible only by a later message or acknowledgement, unless the received count is shown to the peer. A Read
  // is complete with its last segment.
  plan->deferrable = access == Access::kRemoteWrite ? !awaiting_rtr_ && !has_immediate && account_.shown == nullptr : !last_;
  pieces_[0] = {*memory, payload_length_};
  plan->payload = std::span<const iovec>(pieces_).first(1);
  return true;
}

bool Inbound::BeginReadResponse(const ddp::TaggedHeader& header) {
  // Against the oldest Read (RFC 5040 section 5.2.2: "MAY validate"): a peer writes only what was asked for.
  const OutstandingRead& read = reads_.outstanding.front();
  if (read.request != nullptr && read.request->opcode != Opcode::kReadRequest) return Fail(Error::kUnexpectedOpcode);
  const uint32_t left = read.request == nullptr ? 0 : read.request->length - read.received;
  if (payload_length_ != 0) {
    if (payload_length_ > left) return Fail(ddp::Error::kBaseOrBounds);
    if (header.stag != read.request->sink_stag) return Fail(ddp::Error::kInvalidStag);
    if (header.offset.value != read.request->sink_offset.value + read.received) {
      return Fail(ddp::Error::kBaseOrBounds);
    }
  }
  if (last_ && payload_length_ != left) return Fail(Error::kUnspecifiedOperation);  // ends short
  return true;
}

bool Inbound::BeginUntagged(ByteSpan head, llp::UlpduPlan* plan) {
  const auto header = ddp::UntaggedHeader::Parse(head);
  if (!header) {
    return header.error() == ddp::HeaderError::kBadVersion ? Fail(ddp::Error::kUntaggedInvalidVersion)
                                                           : Fail(Error::kUnspecifiedOperation);
  }
  const uint32_t queues = account_.extended() ? kExtendedQueueCount : account_.has(Streams::kWithAtomics) ? kAtomicResponseQueue + 1 : kQueueCount;
  if (header->queue >= queues) return Fail(ddp::Error::kInvalidQueue);
  const bool dropping = account_.dropping && header->queue <= kReadRequestQueue;
  if (header->queue != kDeliveryQueue && !dropping) {
    if (auto error = queues_[header->queue].CheckPosition(*header)) return Fail(*error);
  }
  info_ = CheckOpcode(header->rsvd_ulp, /*tagged=*/false, header->queue);
  if (info_ == nullptr) return false;
  last_ = header->last;
  payload_length_ = segment_.length - ddp::UntaggedHeader::kLength;
  plan->header_length = ddp::UntaggedHeader::kLength;
  plan->payload = {};
  if (dropping) return Drop(plan);
  if (info_->request && !SelectTarget()) return false;
  switch (info_->handler) {
    case Handler::kSend:
      return BeginSend(*header, plan);
    case Handler::kReadRequest:
    case Handler::kAtomicRequest:
      // The unreliable connection has none; its RTR may be an empty Read.
      if (account_.mode == Delivery::kUnreliable && (info_->handler != Handler::kReadRequest || !awaiting_rtr_)) {
        return Fail(Error::kUnexpectedOpcode);
      }
      // The IRD is the number of buffers on this queue (RFC 5040 section 5.2.2).
      if (!queues_[kReadRequestQueue].message_open() && reads_.inbound.full()) return Fail(ddp::Error::kNoBuffer);
      return BeginControl(*header, MutableByteSpan(read_request_).first(info_->rdmap_header_length), plan);
    case Handler::kTerminate:
      return BeginControl(*header, terminate_, plan);
    case Handler::kImmediate:
      return BeginImmediate(*header, plan);
    case Handler::kAtomicResponse:
      return BeginControl(*header, small_, plan);
    case Handler::kDelivery:
      return BeginDelivery(*header, plan);
    case Handler::kWrite:
    case Handler::kReadResponse:
      break;
  }
  return Fail(Error::kUnexpectedOpcode);
}

bool Inbound::BeginSend(const ddp::UntaggedHeader& header, llp::UlpduPlan* plan) {
  ddp::UntaggedQueue& queue = queues_[kSendQueue];
  if (queue.message_open()) {
    if (info_ != open_send_) return Fail(Error::kUnexpectedOpcode);  // a message has one opcode
  } else {
    open_send_ = info_;
    swallow_rtr_ =
        awaiting_rtr_ && expected_rtr_ == llp::Rtr::kSend && last_ && payload_length_ == 0 && !info_->invalidates;
    receive_ = {};
    unplaced_send_ = false;
    has_immediate_ = account_.extended() && ControlByte::Parse(header.rsvd_ulp).immediate;
    if (!swallow_rtr_ && !TakeReceive(payload_length_, plan)) return dropped_;
    receive_cursor_ = ddp::IovecCursor(receive_.memory);
  }
  word_ = header.rsvd_ulp_word;
  return PlaceSend(plan);
}

bool Inbound::PlaceSend(llp::UlpduPlan* plan) {
  if (unplaced_send_) {
    plan->discard = true;
    return true;
  }
  if (auto error = queues_[kSendQueue].CheckRoom(payload_length_, receive_.length)) return Fail(*error);
  const uint64_t end = uint64_t{queues_[kSendQueue].offset()} + payload_length_;
  if (end > receive_.usable) [[unlikely]] {
    receive_.usable = host_.ExtendReceive(end);
    if (end > receive_.usable) return Fail(ddp::Error::kNoBuffer);
  }
  size_t pieces = 0;
  const size_t taken = receive_cursor_.Take(payload_length_, pieces_, &pieces);
  WEFT_CHECK(taken == payload_length_);  // a receive has at most kMaxPieces pieces, and the length it says
  plan->payload = std::span<const iovec>(pieces_).first(pieces);
  return true;
}

bool Inbound::TakeReceive(uint64_t needed, llp::UlpduPlan* plan) {
  auto receive = host_.TakeReceive(needed);
  if (receive) {
    receive_ = *receive;
    return true;
  }
  account_.target_selected = false;  // it may be gone
  if (!SelectTarget()) return false;
  if (!account_.extended() || !host_.ReceivesExhausted()) return Fail(ddp::Error::kNoBuffer);
  if (account_.mode == Delivery::kUnreliable) {
    unplaced_send_ = true;
    return true;
  }
  account_.refused = account_.dropping = true;
  account_.send_msn = queues_[kSendQueue].next_msn();
  account_.read_msn = queues_[kReadRequestQueue].next_msn();
  Drop(plan);
  return false;
}

bool Inbound::BeginImmediate(const ddp::UntaggedHeader& header, llp::UlpduPlan* plan) {
  if (queues_[kSendQueue].message_open()) return Fail(Error::kUnexpectedOpcode);
  // "exactly 8 bytes", RFC 7306 section 6.3.
  if (payload_length_ != kImmediateLength || !last_) return Fail(Error::kUnspecifiedOperation);
  unplaced_send_ = false;
  if (!TakeReceive(/*needed=*/0, plan)) return dropped_;
  return BeginControl(header, small_, plan);
}

bool Inbound::BeginDelivery(const ddp::UntaggedHeader& header, llp::UlpduPlan* plan) {
  if (!account_.reliable() || !last_ || header.message_offset != 0 || payload_length_ != DeliveryMessage::kLength) {
    return Fail(Error::kUnspecifiedOperation);
  }
  pieces_[0] = {small_.data(), payload_length_};
  plan->payload = std::span<const iovec>(pieces_).first(1);
  plan->ours = true;
  return true;
}

bool Inbound::BeginControl(const ddp::UntaggedHeader& header, MutableByteSpan buffer, llp::UlpduPlan* plan) {
  if (auto error = queues_[header.queue].CheckRoom(payload_length_, buffer.size())) return Fail(*error);
  if (payload_length_ == 0) return true;
  pieces_[0] = {buffer.data() + header.message_offset, payload_length_};
  plan->payload = std::span<const iovec>(pieces_).first(1);
  plan->ours = true;
  return true;
}

bool Inbound::End() {
  // A segment may be given up between Begin and End: its region was forgotten, or the RNIC ended the stream.
  const bool was_in_segment = in_segment_;
  in_segment_ = false;
  if (!termination_.operational() || unplaceable_) return false;
  WEFT_CHECK(was_in_segment);
  if (dropped_) return true;
  if (info_->tagged) tagged_open_ = !last_;
  if (!info_->tagged && info_->request && !SelectTarget()) return false;  // a response between may have selected another
  bool well = true;
  switch (info_->handler) {
    case Handler::kWrite:
      write_length_ += payload_length_;
      break;
    case Handler::kReadResponse:
      well = EndReadResponse();
      break;
    case Handler::kSend:
      well = EndSend();
      break;
    case Handler::kReadRequest:
      well = EndReadRequest();
      break;
    case Handler::kTerminate:
      return EndTerminate();
    case Handler::kImmediate:
      well = EndImmediate();
      break;
    case Handler::kAtomicRequest:
      well = EndAtomicRequest();
      break;
    case Handler::kAtomicResponse:
      well = EndAtomicResponse();
      break;
    case Handler::kDelivery:
      return EndDelivery();
  }
  if (last_ && well) {
    if (info_->request && !IsRtr()) {
      account_.Show(++account_.received);
      account_.wanted |= acknowledge_;
      behind_write_ = info_->handler == Handler::kWrite;
    }
    awaiting_rtr_ = false;
  }
  return well;
}

// RFC 5040 section 7 knows memory that was never registered, and none that goes away behind its registration. To the peer it is an error of what it names.
void Inbound::OnUnplaceable() {
  if (!in_segment_ || !termination_.operational()) return;
  switch (info_->handler) {
    case Handler::kWrite:
      Fail(ddp::Error::kBaseOrBounds);
      return;
    case Handler::kReadResponse:
      unplaceable_ = true;
      host_.SinkIsGone(*reads_.outstanding.front().request);
      return;
    default:
      host_.ReceiveIsGone();
      Fail(ddp::Error::kNoBuffer);
  }
}

// Of Writes and of the oldest Read (Place()). Each whole Write was a request.
void Inbound::OnUnplaced(size_t length, ByteSpan head, bool gone) {
  const auto header = ddp::TaggedHeader::Parse(head);
  const bool is_read = ControlByte::Parse(header->rsvd_ulp).opcode == static_cast<uint8_t>(Opcode::kReadResponse);
  if (header->last && !is_read) --account_.received;
  if (!gone || !termination_.operational()) return;
  if (is_read) {
    unplaceable_ = true;
    host_.SinkIsGone(*reads_.outstanding.front().request);
    return;
  }
  segment_.Capture(length, head);
  Fail(ddp::Error::kBaseOrBounds);
}

bool Inbound::IsRtr() {
  if (!awaiting_rtr_) return false;
  switch (expected_rtr_) {
    case llp::Rtr::kNone:
      return false;
    case llp::Rtr::kSend:
      return swallow_rtr_;
    case llp::Rtr::kWrite:
      return info_->handler == Handler::kWrite && write_length_ == 0;
    case llp::Rtr::kRead:
      return info_->handler == Handler::kReadRequest && reads_.inbound.back().header.length == 0;
  }
  return false;
}

bool Inbound::EndReadResponse() {
  OutstandingRead& read = reads_.outstanding.front();
  read.received += payload_length_;
  account_.answers += payload_length_ + (last_ ? 1 : 0);
  if (!last_) return true;
  Request* const request = read.request;
  reads_.outstanding.Pop();
  if (request == nullptr) return true;
  outbound_.OnAnswered(request->sequence);
  host_.ReadDone(*request);
  return true;
}

bool Inbound::EndSend() {
  ddp::UntaggedQueue& queue = queues_[kSendQueue];
  const uint32_t length = queue.offset() + payload_length_;
  queue.Advance(payload_length_, last_);
  if (!last_) return true;
  if (swallow_rtr_ || unplaced_send_) return true;
  ReceivedSend message{.length = length, .solicited = info_->solicited};
  if (info_->invalidates) {
    if (auto error = host_.Invalidate(ddp::STag(word_))) return Fail(InvalidateError(*error));
    message.invalidated = ddp::STag(word_);
  } else if (has_immediate_) {
    message.immediate = word_;
  }
  receive_ = {};
  account_.Show(account_.received + 1);
  host_.Received(message);
  return true;
}

bool Inbound::EndImmediate() {
  queues_[kSendQueue].Advance(payload_length_, last_);
  if (unplaced_send_) return true;
  receive_ = {};
  account_.Show(account_.received + 1);
  host_.Received({.length = behind_write_ ? write_length_ : 0,
                  .solicited = info_->solicited,
                  .immediate = ByteReader(small_).U32(),
                  .of_write = true});
  return true;
}

bool Inbound::EndAtomicRequest() {
  ddp::UntaggedQueue& queue = queues_[kReadRequestQueue];
  InboundRead read;
  read.msn = queue.next_msn();
  read.is_atomic = true;
  read.target = account_.target;
  const uint32_t length = queue.offset() + payload_length_;
  queue.Advance(payload_length_, last_);
  if (!last_) return true;
  const auto header = AtomicRequestHeader::Parse(ByteSpan(read_request_).first(length));
  if (!header) return Fail(Error::kUnspecifiedOperation);
  const auto original = host_.Atomic(header->stag, header->offset, header->operation);
  if (!original) return Fail(ReadError(original.error()));
  read.atomic = {header->identifier, *original};
  reads_.inbound.Push(read);
  return true;
}

bool Inbound::EndAtomicResponse() {
  ddp::UntaggedQueue& queue = queues_[kAtomicResponseQueue];
  const uint32_t length = queue.offset() + payload_length_;
  queue.Advance(payload_length_, last_);
  if (!last_) return true;
  const auto header = AtomicResponseHeader::Parse(ByteSpan(small_).first(length));
  Request* const request = reads_.outstanding.front().request;
  if (!header || request == nullptr || request->opcode != Opcode::kAtomicRequest || request->sequence != header->identifier) {
    return Fail(Error::kUnspecifiedOperation);
  }
  // In the order of this host's bytes, as programs expect it (IBV_ATOMIC_HCA).
  std::array<uint8_t, sizeof(uint64_t)> value;
  std::memcpy(value.data(), &header->original, value.size());
  ddp::IovecCursor cursor(request->local);
  size_t pieces = 0;
  cursor.Take(value.size(), pieces_, &pieces);
  size_t at = 0;
  for (size_t i = 0; i < pieces; at += pieces_[i].iov_len, ++i) {
    if (!ThreadOfOurs()) {
      std::memcpy(pieces_[i].iov_base, value.data() + at, pieces_[i].iov_len);
      continue;
    }
    if (WriteProgramMemory(pieces_[i].iov_base, value.data() + at, pieces_[i].iov_len)) continue;
    unplaceable_ = true;
    host_.SinkIsGone(*request);
    return false;
  }
  reads_.outstanding.Pop();
  ++account_.answers;
  outbound_.OnAnswered(request->sequence);
  host_.ReadDone(*request);
  return true;
}

bool Inbound::EndDelivery() {
  const auto message = DeliveryMessage::Parse(small_);
  if (!message) return Fail(Error::kUnspecifiedOperation);
  bool sensible = false;
  switch (message->kind) {
    case DeliveryMessage::Kind::kAcknowledge:
      sensible = outbound_.OnAcknowledged(message->sequence);
      break;
    case DeliveryMessage::Kind::kNotReady:
      sensible = outbound_.OnNotReady(*message);
      break;
    case DeliveryMessage::Kind::kResume:
      sensible = account_.dropping && message->sequence == account_.received + 1;
      account_.dropping = false;
      break;
    case DeliveryMessage::Kind::kTarget:
      // Not within a request. Whether there is such a target is looked at with the request: it may be dropped, and another come first.
      sensible = account_.targeted && message->sequence != 0 && !tagged_open_ && !queues_[kSendQueue].message_open() &&
                 !queues_[kReadRequestQueue].message_open();
      account_.target = message->sequence;
      account_.target_selected = false;
      break;
  }
  return sensible || Fail(Error::kUnspecifiedOperation);
}

bool Inbound::EndReadRequest() {
  ddp::UntaggedQueue& queue = queues_[kReadRequestQueue];
  InboundRead read;
  read.msn = queue.next_msn();
  read.target = account_.target;
  const uint32_t length = queue.offset() + payload_length_;
  queue.Advance(payload_length_, last_);
  if (!last_) return true;
  if (length < ReadRequestHeader::kLength) return Fail(Error::kUnspecifiedOperation);
  read.header = *ReadRequestHeader::Parse(read_request_);

  // An empty Read's source "MUST NOT" be validated, RFC 5040 section 5.2.1.
  if (read.header.length != 0) {
    if (account_.mode == Delivery::kUnreliable) return Fail(Error::kUnexpectedOpcode);
    std::optional<Error> refused;
    if (read.header.source_offset.value + read.header.length < read.header.source_offset.value) {
      refused = Error::kOffsetWrap;
    } else if (auto memory = host_.Resolve(read.header.source_stag, read.header.source_offset, read.header.length,
                                           Access::kRemoteRead);
               !memory) {
      refused = ReadError(memory.error());
    }
    if (refused) {
      termination_.Fail(Explain(*refused, read, /*done=*/0));
      return false;
    }
  }
  reads_.inbound.Push(read);
  return true;
}

bool Inbound::EndTerminate() {
  ddp::UntaggedQueue& queue = queues_[kTerminateQueue];
  const uint32_t length = queue.offset() + payload_length_;
  queue.Advance(payload_length_, last_);
  if (!last_) return true;
  // A Terminate that makes no sense ends the stream all the same, and is never answered.
  termination_.OnPeerTerminate(
      TerminateMessage::Parse(ByteSpan(terminate_).first(length)).value_or(Explain(Error::kUnspecifiedOperation)));
  return false;
}

const OpcodeInfo* Inbound::CheckOpcode(uint8_t control_byte, bool tagged, uint32_t queue) {
  const ControlByte control = ControlByte::Parse(control_byte);
  // Version 0, the RDMA Consortium's, would have been agreed on by an MPA revision 0 that Weft does not speak
  // (RFC 5044 appendix C).
  if (control.version != kRdmapVersion) {
    Fail(Error::kInvalidVersion);
    return nullptr;
  }
  acknowledge_ = control.acknowledge;
  const OpcodeInfo* info = FindOpcode(control.opcode);
  const bool fits = info != nullptr && account_.has(info->streams) && info->tagged == tagged && info->queue == queue &&
                    (info->legal != Legal::kWhileReadOutstanding || !reads_.outstanding.empty());
  if (!fits) {
    Fail(Error::kUnexpectedOpcode);
    return nullptr;
  }
  return info;
}

bool Inbound::Fail(ddp::Error error) {
  termination_.Fail(Explain(error, segment_));
  return false;
}

bool Inbound::Fail(Error error) {
  termination_.Fail(Explain(error, segment_));
  return false;
}

bool Inbound::Forget(ddp::STag stag) {
  if (!in_segment_ || !info_->tagged || payload_length_ == 0 || placing_ != stag) return false;
  Fail(Error::kInvalidStag);
  return true;
}

bool Inbound::idle() const {
  if (in_segment_ || tagged_open_) return false;
  for (const ddp::UntaggedQueue& queue : queues_) {
    if (queue.message_open()) return false;
  }
  return true;
}

}  // namespace weft::rdmap
