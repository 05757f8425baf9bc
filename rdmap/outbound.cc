#include "rdmap/outbound.h"

#include "base/check.h"

namespace weft::rdmap {
namespace {

// Some peers refuse STag 0 even where the RFC says that it is not looked at.
constexpr ddp::STag kRtrStag{1};

}  // namespace

Outbound::Outbound(uint32_t ord, Host& host, ReadQueues& reads, Termination& termination)
    : host_(host), reads_(reads), termination_(termination), ord_(ord) {}

bool Outbound::Transmit(mpa::UlpduWriter& out, bool only_terminate) {
  bool appended = false;
  response_payload_known_ = false;
  while (termination_.operational()) {
    if (only_terminate) return false;
    if (!segmenter_.active() && !StartMessage()) return appended;
    if (source_ == Source::kResponse && !FindResponsePayload()) break;
    const ddp::Segmenter::Progress progress = segmenter_.AppendTo(out);
    if (progress == ddp::Segmenter::Progress::kNoRoom) return appended;
    appended = true;
    if (progress == ddp::Segmenter::Progress::kMessageDone) FinishMessage(out.appended());
  }
  return TransmitTerminate(out) || appended;
}

bool Outbound::TransmitTerminate(mpa::UlpduWriter& out) {
  if (termination_.state() != StreamState::kTerminating || terminate_end_position_ != 0) return false;
  if (source_ != Source::kTerminate) {
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

bool Outbound::StartMessage() {
  if (rtr_ != mpa::Rtr::kNone) {
    StartRtr();
    return true;
  }
  const bool response = !reads_.inbound.empty();
  if (response && response_next_) {
    StartResponse();
    return true;
  }
  if (Request* request = NextReady()) {
    StartRequest(*request);
    return true;
  }
  if (response) StartResponse();
  return response;
}

Request* Outbound::NextReady() const {
  Request* const request = host_.NextRequest();
  if (request == nullptr) return nullptr;
  const uint32_t outstanding = reads_.outstanding.size();
  if (request->opcode == Opcode::kReadRequest && outstanding >= ord_) return nullptr;
  if (request->fence && outstanding != 0) return nullptr;
  return request;
}

void Outbound::StartRtr() {
  source_ = Source::kRtr;
  switch (rtr_) {
    case mpa::Rtr::kNone:
      break;
    case mpa::Rtr::kSend:
      return StartUntagged(Opcode::kSend, 0, {}, 0, false);
    case mpa::Rtr::kWrite:
      return StartTagged(Opcode::kWrite, kRtrStag, ddp::TaggedOffset(0), {}, 0, false);
    case mpa::Rtr::kRead:
      return StartReadRequest({kRtrStag, ddp::TaggedOffset(0), 0, kRtrStag, ddp::TaggedOffset(0)});
  }
  WEFT_CHECK(false);
}

void Outbound::StartResponse() {
  source_ = Source::kResponse;
  response_next_ = false;
  response_payload_known_ = false;
  const ReadRequestHeader& read = reads_.inbound.front().header;
  StartTagged(Opcode::kReadResponse, read.sink_stag, read.sink_offset, {}, read.length, false);
}

bool Outbound::FindResponsePayload() {
  if (response_payload_known_) return true;
  const InboundRead& read = reads_.inbound.front();
  const uint32_t left = segmenter_.remaining();
  // Asked anew in each call of Transmit: the region may have gone since.
  if (left != 0) {
    const uint32_t done = read.header.length - left;
    const auto memory = host_.Resolve(
        read.header.source_stag, ddp::TaggedOffset(read.header.source_offset.value + done), left, Access::kRemoteRead);
    if (!memory) {
      termination_.Fail(Explain(ReadError(memory.error()), read, done));
      return false;
    }
    piece_ = {*memory, left};
    segmenter_.ReplacePayload({&piece_, 1});
  }
  response_payload_known_ = true;
  return true;
}

void Outbound::StartRequest(Request& request) {
  source_ = Source::kRequest;
  response_next_ = true;
  request_ = &request;
  host_.Started(request);
  switch (request.opcode) {
    case Opcode::kWrite:
      return StartTagged(Opcode::kWrite, request.remote_stag, request.remote_offset, request.local, request.length,
                         request.volatile_local);
    case Opcode::kReadRequest:
      return StartReadRequest(
          {request.sink_stag, request.sink_offset, request.length, request.remote_stag, request.remote_offset});
    case Opcode::kSend:
    case Opcode::kSendSolicited:
      return StartUntagged(request.opcode, 0, request.local, request.length, request.volatile_local);
    case Opcode::kSendInvalidate:
    case Opcode::kSendSolicitedInvalidate:
      return StartUntagged(request.opcode, request.invalidate_stag.value, request.local, request.length,
                           request.volatile_local);
    case Opcode::kReadResponse:
    case Opcode::kTerminate:
      break;
  }
  WEFT_CHECK(false);  // not a work request
}

void Outbound::StartReadRequest(const ReadRequestHeader& header) {
  piece_ = {control_.data(), header.Serialize(control_)};
  StartUntagged(Opcode::kReadRequest, 0, {&piece_, 1}, ReadRequestHeader::kLength, true);
}

void Outbound::StartTagged(Opcode opcode, ddp::STag stag, ddp::TaggedOffset offset, std::span<const iovec> payload,
                           uint32_t length, bool volatile_payload) {
  ddp::TaggedHeader header;
  header.rsvd_ulp = ControlByteOf(opcode);
  header.stag = stag;
  header.offset = offset;
  segmenter_.Start(header, payload, length, volatile_payload);
}

void Outbound::StartUntagged(Opcode opcode, uint32_t word, std::span<const iovec> payload, uint32_t length,
                             bool volatile_payload) {
  ddp::UntaggedHeader header;
  header.rsvd_ulp = ControlByteOf(opcode);
  header.rsvd_ulp_word = word;
  header.queue = FindOpcode(opcode)->queue;
  ddp::Msn& msn = next_msn_[header.queue];
  header.msn = msn;
  msn = ddp::Msn(msn.value + 1);
  segmenter_.Start(header, payload, length, volatile_payload);
}

void Outbound::FinishMessage(uint64_t position) {
  switch (source_) {
    case Source::kRtr:
      if (rtr_ == mpa::Rtr::kRead) reads_.outstanding.Push({nullptr, 0});
      rtr_ = mpa::Rtr::kNone;
      break;
    case Source::kResponse:
      reads_.inbound.Pop();
      break;
    case Source::kRequest:
      request_->end_position = position;
      if (request_->opcode == Opcode::kReadRequest) {
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
  while (termination_.operational() && oldest_unsent_ != nullptr && oldest_unsent_->end_position <= position) {
    Request* const request = oldest_unsent_;
    oldest_unsent_ = request->next;  // before the host reuses it
    host_.Sent(*request);
  }
}

bool Outbound::HasWork(bool only_terminate) const {
  switch (termination_.state()) {
    case StreamState::kTerminated:
      return false;
    case StreamState::kTerminating:
      return terminate_end_position_ == 0;
    case StreamState::kOperational:
      break;
  }
  if (only_terminate) return false;
  return segmenter_.active() || rtr_ != mpa::Rtr::kNone || !reads_.inbound.empty() || NextReady() != nullptr;
}

bool Outbound::Forget(ddp::STag stag) {
  for (uint32_t i = 0; i < reads_.inbound.size(); ++i) {
    const InboundRead& read = reads_.inbound[i];
    const bool under_way = i == 0 && source_ == Source::kResponse;
    const uint32_t left = under_way ? segmenter_.remaining() : read.header.length;
    if (left == 0 || read.header.source_stag != stag) continue;
    termination_.Fail(Explain(Error::kInvalidStag, read, read.header.length - left));
    return true;
  }
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
