#include "mpa/start_up.h"

#include <algorithm>

#include "base/check.h"

namespace weft::mpa {
namespace {

uint16_t Ird(const StartFrame& frame) { return frame.ird_word & kIrdOrdMask; }
uint16_t Ord(const StartFrame& frame) { return frame.ord_word & kIrdOrdMask; }

// What can be said in 14 bits without saying "not negotiated".
uint16_t Sayable(uint16_t count) { return std::min<uint16_t>(count, kIrdOrdNotNegotiated - 1); }

// Which of our two limits a value of the peer leaves: 0x3fff leaves it unchanged (RFC 6581 section 9.1).
uint16_t Reduced(uint16_t ours, uint16_t peers) { return peers == kIrdOrdNotNegotiated ? ours : std::min(ours, peers); }

struct RtrKinds {
  bool send = false, write = false, read = false;

  bool any() const { return send || write || read; }
  RtrKinds And(const RtrKinds& other) const { return {send && other.send, write && other.write, read && other.read}; }
  // A Write needs nothing of the receiver, a Read an answer, a Send a receive or an exception from it.
  llp::Rtr Best() const { return write ? llp::Rtr::kWrite : read ? llp::Rtr::kRead : send ? llp::Rtr::kSend : llp::Rtr::kNone; }
};

RtrKinds Kinds(const StartParams& params) { return {params.rtr_send, params.rtr_write, params.rtr_read}; }

// "If Control Flag A is set to 0, then Control Flags B, C, and D MUST be ignored" (RFC 6581 section 9.2).
RtrKinds Kinds(const StartFrame& frame) {
  if (!frame.enhanced || !(frame.ird_word & kPeerToPeerBit)) return {};
  return {(frame.ird_word & kRtrSendBit) != 0, (frame.ord_word & kRtrWriteBit) != 0,
          (frame.ord_word & kRtrReadBit) != 0};
}

void SetWords(StartFrame& frame, uint16_t ird, uint16_t ord, bool peer_to_peer, const RtrKinds& kinds) {
  frame.ird_word = static_cast<uint16_t>(ird | (peer_to_peer ? kPeerToPeerBit : 0) | (kinds.send ? kRtrSendBit : 0));
  frame.ord_word = static_cast<uint16_t>(ord | (kinds.write ? kRtrWriteBit : 0) | (kinds.read ? kRtrReadBit : 0));
}

RtrKinds Only(llp::Rtr kind) { return {kind == llp::Rtr::kSend, kind == llp::Rtr::kWrite, kind == llp::Rtr::kRead}; }

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
  if (request.enhanced) {
    const bool peer_to_peer = ours.peer_to_peer && Kinds(ours).any();
    SetWords(request, Sayable(ours.ird), Sayable(ours.ord), peer_to_peer, peer_to_peer ? Kinds(ours) : RtrKinds());
  }
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
  if (reply.enhanced) {
    outcome->ird = Reduced(ours.ird, Ord(reply));
    outcome->ord = Reduced(ours.ord, Ird(reply));
  }
  if (reply.rejected) return StartError::kRejected;
  if (!reply.enhanced) return StartError::kNone;

  // "MUST set its IRD at least to the responder ORD" or end the connection for lack of resources (section 9.1).
  if (Ord(reply) != kIrdOrdNotNegotiated && Ord(reply) > ours.ird) return StartError::kIrdOrdRefused;

  // An answer without A to a request with it leaves the client-server model, in which nothing special is sent first.
  const bool asked = ours.peer_to_peer && Kinds(ours).any();
  if (asked && (reply.ird_word & kPeerToPeerBit)) {
    outcome->rtr = Kinds(ours).And(Kinds(reply)).Best();
    if (outcome->rtr == llp::Rtr::kNone) return StartError::kNoCommonRtr;
  }
  return StartError::kNone;
}

StartOutcome DescribeRequest(const StartFrame& request) {
  StartOutcome outcome;
  outcome.revision = request.revision;
  outcome.crc = request.crc;
  outcome.send_markers = request.markers;
  outcome.has_ird_ord = request.enhanced;
  if (request.enhanced) {
    outcome.ird = Ord(request);
    outcome.ord = Ird(request);
    outcome.rtr = Kinds(request).Best();
  }
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

  // RFC 6581 section 9.1: our IRD serves the initiator's ORD, our ORD is at most its IRD, and what it does not want to
  // negotiate is left alone and answered likewise.
  outcome->ird = Reduced(ours.ird, Ord(request));
  outcome->ord = Reduced(ours.ord, Ird(request));

  const bool peer_to_peer = (request.ird_word & kPeerToPeerBit) != 0;
  if (peer_to_peer) {
    // Section 9.2: of the kinds that the initiator offers, those that we take; failing that, at least one that we take.
    // We name exactly one, so that what comes first is known.
    const RtrKinds take = Kinds(ours).any() ? Kinds(ours) : RtrKinds{true, true, true};
    const RtrKinds common = take.And(Kinds(request));
    outcome->rtr = (common.any() ? common : take).Best();
    // "If the initiator ORD is insufficient [...] the responder IRD MAY be increased."
    if (outcome->rtr == llp::Rtr::kRead) outcome->ird = std::max<uint16_t>(outcome->ird, 1);
  }
  const uint16_t ird = Ord(request) == kIrdOrdNotNegotiated ? kIrdOrdNotNegotiated : Sayable(outcome->ird);
  const uint16_t ord = Ird(request) == kIrdOrdNotNegotiated ? kIrdOrdNotNegotiated : Sayable(outcome->ord);
  SetWords(reply, ird, ord, peer_to_peer, Only(outcome->rtr));
  return reply;
}

StartFrame MakeReject(const StartFrame& request, ByteSpan private_data) {
  StartFrame reply = ReplyTo(request, 2);
  reply.rejected = true;
  reply.crc = request.crc;
  reply.private_data.assign(private_data.begin(), private_data.end());
  // No Reads in either direction; the model and its first message as they were asked for (RFC 6581 section 9.2).
  if (reply.enhanced) SetWords(reply, 0, 0, (request.ird_word & kPeerToPeerBit) != 0, Only(Kinds(request).Best()));
  return reply;
}

}  // namespace weft::mpa
