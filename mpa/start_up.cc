#include "mpa/start_up.h"

#include <algorithm>

#include "base/check.h"

namespace weft::mpa {
namespace {

llp::ReadParams Reads(const StartParams& params) {
  return {.ird = params.ird,
          .ord = params.ord,
          .peer_to_peer = params.peer_to_peer,
          .rtr_send = params.rtr_send,
          .rtr_write = params.rtr_write,
          .rtr_read = params.rtr_read};
}

llp::ReadWords Words(const StartFrame& frame) { return {.ird = frame.ird_word, .ord = frame.ord_word}; }

void SetWords(StartFrame& frame, const llp::ReadWords& words) {
  frame.ird_word = words.ird;
  frame.ord_word = words.ord;
}

void Take(const llp::Outcome& reads, StartOutcome& outcome) {
  outcome.ird = reads.ird;
  outcome.ord = reads.ord;
  outcome.rtr = reads.rtr;
}

// The reply's frame without IRD/ORD: enhanced exactly if the request is (RFC 6581 section 10).
StartFrame ReplyTo(const StartFrame& request, uint8_t our_revision) {
  StartFrame reply;
  reply.reply = true;
  reply.revision = std::min(request.revision, our_revision);
  reply.enhanced = request.enhanced && reply.revision >= 2;
  return reply;
}

}  // namespace

StartFrame MakeRequest(const StartParams& ours) {
  StartFrame request;
  request.revision = ours.revision;
  request.enhanced = ours.revision >= 2;
  request.markers = ours.markers;
  request.crc = ours.crc;
  request.private_data = ours.private_data;
  if (request.enhanced) SetWords(request, llp::AskForReads(Reads(ours)));
  return request;
}

StartError OnReply(const StartParams& ours, const StartFrame& reply, StartOutcome* outcome) {
  *outcome = StartOutcome();
  outcome->revision = reply.revision;
  outcome->crc = ours.crc || reply.crc;
  outcome->send_markers = reply.markers;
  outcome->receive_markers = ours.markers;
  outcome->ird = ours.ird;
  outcome->ord = ours.ord;
  outcome->private_data = reply.private_data;

  // A responder of revision 1 may answer a request of revision 2 (RFC 6581 section 10 wants it to close, but some do
  // not); then nothing enhanced is agreed. The other way round is nothing that was asked for.
  if (reply.revision > ours.revision) return StartError::kBadRevision;
  outcome->has_ird_ord = reply.enhanced;
  llp::ReadsError error = llp::ReadsError::kNone;
  if (reply.enhanced) {
    llp::Outcome reads;
    error = llp::OnReadsAnswer(Reads(ours), Words(reply), reply.rejected, &reads);
    Take(reads, *outcome);
  }
  if (reply.rejected) return StartError::kRejected;
  switch (error) {
    case llp::ReadsError::kNone:
      return StartError::kNone;
    case llp::ReadsError::kIrdOrdRefused:
      return StartError::kIrdOrdRefused;
    case llp::ReadsError::kNoCommonRtr:
      return StartError::kNoCommonRtr;
  }
  return StartError::kNone;
}

StartOutcome DescribeRequest(const StartFrame& request) {
  StartOutcome outcome;
  outcome.revision = request.revision;
  outcome.crc = request.crc;
  outcome.send_markers = request.markers;
  outcome.has_ird_ord = request.enhanced;
  if (request.enhanced) Take(llp::DescribeReads(Words(request)), outcome);
  outcome.private_data = request.private_data;
  return outcome;
}

StartFrame MakeReply(const StartFrame& request, const StartParams& ours, StartOutcome* outcome) {
  StartFrame reply = ReplyTo(request, ours.revision);
  reply.markers = ours.markers;
  // With C in the request CRCs are in use whatever we say (RFC 5044 section 7.1.1); some initiators want to read it
  // back.
  reply.crc = ours.crc || request.crc;
  reply.private_data = ours.private_data;

  *outcome = DescribeRequest(request);
  outcome->revision = reply.revision;
  outcome->crc = reply.crc;
  outcome->receive_markers = ours.markers;
  outcome->has_ird_ord = reply.enhanced;
  outcome->ird = ours.ird;
  outcome->ord = ours.ord;
  outcome->rtr = llp::Rtr::kNone;
  if (!reply.enhanced) return reply;

  llp::Outcome reads;
  SetWords(reply, llp::AnswerReads(Words(request), Reads(ours), &reads));
  Take(reads, *outcome);
  return reply;
}

StartFrame MakeReject(const StartFrame& request, ByteSpan private_data) {
  StartFrame reply = ReplyTo(request, 2);
  reply.rejected = true;
  reply.crc = request.crc;
  reply.private_data.assign(private_data.begin(), private_data.end());
  if (reply.enhanced) SetWords(reply, llp::RejectReads(Words(request)));
  return reply;
}

}  // namespace weft::mpa
