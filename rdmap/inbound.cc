#include "rdmap/inbound.h"

#include "base/check.h"

namespace weft::rdmap {

Inbound::Inbound(mpa::Rtr expected_rtr, Host& host, ReadQueues& reads, Termination& termination)
    : host_(host),
      reads_(reads),
      termination_(termination),
      awaiting_rtr_(expected_rtr != mpa::Rtr::kNone),
      expected_rtr_(expected_rtr) {}

bool Inbound::Begin(size_t length, ByteSpan head, mpa::UlpduPlan* plan) {
  if (!termination_.operational()) return false;
  WEFT_CHECK(!in_segment_ && head.size() <= length && length <= UINT16_MAX);
  segment_.Capture(length, head);
  payload_length_ = 0;

  const bool tagged = !head.empty() && ddp::ControlField::Parse(head[0]).tagged;
  const bool accepted = tagged ? BeginTagged(head, plan) : BeginUntagged(head, plan);
  in_segment_ = accepted;
  return accepted;
}

bool Inbound::BeginTagged(ByteSpan head, mpa::UlpduPlan* plan) {
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
    return BeginReadResponse(*header) && Place(*header, Access::kReadSink, plan);
  }
  return Place(*header, Access::kRemoteWrite, plan);
}

bool Inbound::Place(const ddp::TaggedHeader& header, Access access, mpa::UlpduPlan* plan) {
  // "The STag and TO fields MUST NOT be checked for a zero-length Tagged DDP Message", RFC 5041 section 5.2.
  if (payload_length_ == 0) return true;
  if (header.offset.value + payload_length_ < header.offset.value) return Fail(ddp::Error::kOffsetWrap);
  const auto memory = host_.Resolve(header.stag, header.offset, payload_length_, access);
  if (!memory) return Fail(PlacementError(memory.error()));
  placing_ = header.stag;
  pieces_[0] = {*memory, payload_length_};
  plan->payload = std::span<const iovec>(pieces_).first(1);
  return true;
}

bool Inbound::BeginReadResponse(const ddp::TaggedHeader& header) {
  // Against the oldest Read (RFC 5040 section 5.2.2: "MAY validate"): a peer writes only what was asked for.
  const OutstandingRead& read = reads_.outstanding.front();
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

bool Inbound::BeginUntagged(ByteSpan head, mpa::UlpduPlan* plan) {
  const auto header = ddp::UntaggedHeader::Parse(head);
  if (!header) {
    return header.error() == ddp::HeaderError::kBadVersion ? Fail(ddp::Error::kUntaggedInvalidVersion)
                                                           : Fail(Error::kUnspecifiedOperation);
  }
  if (header->queue >= kQueueCount) return Fail(ddp::Error::kInvalidQueue);
  if (auto error = queues_[header->queue].CheckPosition(*header)) return Fail(*error);
  info_ = CheckOpcode(header->rsvd_ulp, /*tagged=*/false, header->queue);
  if (info_ == nullptr) return false;
  last_ = header->last;
  payload_length_ = segment_.length - ddp::UntaggedHeader::kLength;
  plan->header_length = ddp::UntaggedHeader::kLength;
  plan->payload = {};
  switch (info_->handler) {
    case Handler::kSend:
      return BeginSend(*header, plan);
    case Handler::kReadRequest:
      // The IRD is the number of buffers on this queue (RFC 5040 section 5.2.2).
      if (!queues_[kReadRequestQueue].message_open() && reads_.inbound.full()) return Fail(ddp::Error::kNoBuffer);
      return BeginControl(*header, read_request_, plan);
    case Handler::kTerminate:
      return BeginControl(*header, terminate_, plan);
    case Handler::kWrite:
    case Handler::kReadResponse:
      break;
  }
  return Fail(Error::kUnexpectedOpcode);
}

bool Inbound::BeginSend(const ddp::UntaggedHeader& header, mpa::UlpduPlan* plan) {
  ddp::UntaggedQueue& queue = queues_[kSendQueue];
  if (queue.message_open()) {
    if (info_ != open_send_) return Fail(Error::kUnexpectedOpcode);  // a message has one opcode
  } else {
    open_send_ = info_;
    swallow_rtr_ =
        awaiting_rtr_ && expected_rtr_ == mpa::Rtr::kSend && last_ && payload_length_ == 0 && !info_->invalidates;
    receive_ = {};
    if (!swallow_rtr_) {
      auto receive = host_.TakeReceive();
      if (!receive) return Fail(ddp::Error::kNoBuffer);
      receive_ = *receive;
    }
    receive_cursor_ = ddp::IovecCursor(receive_.memory);
  }
  if (auto error = queue.CheckRoom(payload_length_, receive_.length)) return Fail(*error);
  invalidate_ = ddp::STag(header.rsvd_ulp_word);
  size_t pieces = 0;
  const size_t taken = receive_cursor_.Take(payload_length_, pieces_, &pieces);
  WEFT_CHECK(taken == payload_length_);  // a receive has at most kMaxPieces pieces, and the length it says
  plan->payload = std::span<const iovec>(pieces_).first(pieces);
  return true;
}

template <size_t kCapacity>
bool Inbound::BeginControl(const ddp::UntaggedHeader& header, std::array<uint8_t, kCapacity>& buffer,
                           mpa::UlpduPlan* plan) {
  if (auto error = queues_[header.queue].CheckRoom(payload_length_, kCapacity)) return Fail(*error);
  if (payload_length_ == 0) return true;
  pieces_[0] = {buffer.data() + header.message_offset, payload_length_};
  plan->payload = std::span<const iovec>(pieces_).first(1);
  return true;
}

bool Inbound::End() {
  // A segment may be given up between Begin and End: its region was forgotten, or the RNIC ended the stream.
  const bool was_in_segment = in_segment_;
  in_segment_ = false;
  if (!termination_.operational()) return false;
  WEFT_CHECK(was_in_segment);
  if (info_->tagged) tagged_open_ = !last_;
  bool well = true;
  switch (info_->handler) {
    case Handler::kWrite:
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
  }
  if (last_ && well) awaiting_rtr_ = false;
  return well;
}

bool Inbound::EndReadResponse() {
  OutstandingRead& read = reads_.outstanding.front();
  read.received += payload_length_;
  if (!last_) return true;
  Request* const request = read.request;
  reads_.outstanding.Pop();
  if (request != nullptr) host_.ReadDone(*request);
  return true;
}

bool Inbound::EndSend() {
  ddp::UntaggedQueue& queue = queues_[kSendQueue];
  const uint32_t length = queue.offset() + payload_length_;
  queue.Advance(payload_length_, last_);
  if (!last_) return true;
  if (swallow_rtr_) return true;
  ReceivedSend message{length, info_->solicited, std::nullopt};
  if (info_->invalidates) {
    if (auto error = host_.Invalidate(invalidate_)) return Fail(InvalidateError(*error));
    message.invalidated = invalidate_;
  }
  receive_ = {};
  host_.Received(message);
  return true;
}

bool Inbound::EndReadRequest() {
  ddp::UntaggedQueue& queue = queues_[kReadRequestQueue];
  InboundRead read;
  read.msn = queue.next_msn();
  const uint32_t length = queue.offset() + payload_length_;
  queue.Advance(payload_length_, last_);
  if (!last_) return true;
  if (length < ReadRequestHeader::kLength) return Fail(Error::kUnspecifiedOperation);
  read.header = *ReadRequestHeader::Parse(read_request_);

  // An empty Read's source "MUST NOT" be validated, RFC 5040 section 5.2.1.
  if (read.header.length != 0) {
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
  const OpcodeInfo* info = FindOpcode(control.opcode);
  const bool fits = info != nullptr && info->tagged == tagged && info->queue == queue &&
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
