#include "llp/reads.h"

#include <algorithm>

namespace weft::llp {
namespace {

uint16_t Ird(const ReadWords& words) { return words.ird & kIrdOrdMask; }
uint16_t Ord(const ReadWords& words) { return words.ord & kIrdOrdMask; }

// What can be said in 14 bits without saying "not negotiated".
uint16_t Sayable(uint16_t count) { return std::min<uint16_t>(count, kIrdOrdNotNegotiated - 1); }

// Which of our two limits a value of the peer leaves: 0x3fff leaves it unchanged (RFC 6581 section 9.1).
uint16_t Reduced(uint16_t ours, uint16_t peers) { return peers == kIrdOrdNotNegotiated ? ours : std::min(ours, peers); }

struct RtrKinds {
  bool send = false, write = false, read = false;

  bool any() const { return send || write || read; }
  RtrKinds And(const RtrKinds& other) const { return {send && other.send, write && other.write, read && other.read}; }
  // A Write needs nothing of the receiver, a Read an answer, a Send a receive or an exception from it.
  Rtr Best() const { return write ? Rtr::kWrite : read ? Rtr::kRead : send ? Rtr::kSend : Rtr::kNone; }
};

RtrKinds Kinds(const ReadParams& params) { return {params.rtr_send, params.rtr_write, params.rtr_read}; }

// "If Control Flag A is set to 0, then Control Flags B, C, and D MUST be ignored" (RFC 6581 section 9.2).
RtrKinds Kinds(const ReadWords& words) {
  if (!(words.ird & kPeerToPeerBit)) return {};
  return {(words.ird & kRtrSendBit) != 0, (words.ord & kRtrWriteBit) != 0, (words.ord & kRtrReadBit) != 0};
}

ReadWords Words(uint16_t ird, uint16_t ord, bool peer_to_peer, const RtrKinds& kinds) {
  return {.ird = static_cast<uint16_t>(ird | (peer_to_peer ? kPeerToPeerBit : 0) | (kinds.send ? kRtrSendBit : 0)),
          .ord = static_cast<uint16_t>(ord | (kinds.write ? kRtrWriteBit : 0) | (kinds.read ? kRtrReadBit : 0))};
}

RtrKinds Only(Rtr kind) { return {kind == Rtr::kSend, kind == Rtr::kWrite, kind == Rtr::kRead}; }

}  // namespace

ReadWords AskForReads(const ReadParams& ours) {
  const bool peer_to_peer = ours.peer_to_peer && Kinds(ours).any();
  return Words(Sayable(ours.ird), Sayable(ours.ord), peer_to_peer, peer_to_peer ? Kinds(ours) : RtrKinds());
}

ReadsError OnReadsAnswer(const ReadParams& ours, const ReadWords& reply, bool rejected, Outcome* outcome) {
  *outcome = {.ird = Reduced(ours.ird, Ord(reply)), .ord = Reduced(ours.ord, Ird(reply))};
  if (rejected) return ReadsError::kNone;

  // "MUST set its IRD at least to the responder ORD" or end the connection for lack of resources (section 9.1).
  if (Ord(reply) != kIrdOrdNotNegotiated && Ord(reply) > ours.ird) return ReadsError::kIrdOrdRefused;

  // An answer without A to a request with it leaves the client-server model, in which nothing special is sent first.
  const bool asked = ours.peer_to_peer && Kinds(ours).any();
  if (asked && (reply.ird & kPeerToPeerBit)) {
    outcome->rtr = Kinds(ours).And(Kinds(reply)).Best();
    if (outcome->rtr == Rtr::kNone) return ReadsError::kNoCommonRtr;
  }
  return ReadsError::kNone;
}

Outcome DescribeReads(const ReadWords& request) {
  return {.ird = Ord(request), .ord = Ird(request), .rtr = Kinds(request).Best()};
}

ReadWords AnswerReads(const ReadWords& request, const ReadParams& ours, Outcome* outcome) {
  // RFC 6581 section 9.1: our IRD serves the initiator's ORD, our ORD is at most its IRD, and what it does not want to
  // negotiate is left alone and answered likewise.
  *outcome = {.ird = Reduced(ours.ird, Ord(request)), .ord = Reduced(ours.ord, Ird(request))};

  const bool peer_to_peer = (request.ird & kPeerToPeerBit) != 0;
  if (peer_to_peer) {
    // Section 9.2: of the kinds that the initiator offers, those that we take; failing that, at least one that we take.
    // We name exactly one, so that what comes first is known.
    const RtrKinds take = Kinds(ours).any() ? Kinds(ours) : RtrKinds{true, true, true};
    const RtrKinds common = take.And(Kinds(request));
    outcome->rtr = (common.any() ? common : take).Best();
    // "If the initiator ORD is insufficient [...] the responder IRD MAY be increased."
    if (outcome->rtr == Rtr::kRead) outcome->ird = std::max<uint16_t>(outcome->ird, 1);
  }
  const uint16_t ird = Ord(request) == kIrdOrdNotNegotiated ? kIrdOrdNotNegotiated : Sayable(outcome->ird);
  const uint16_t ord = Ird(request) == kIrdOrdNotNegotiated ? kIrdOrdNotNegotiated : Sayable(outcome->ord);
  return Words(ird, ord, peer_to_peer, Only(outcome->rtr));
}

// No Reads in either direction; the model and its first message as they were asked for (RFC 6581 section 9.2).
ReadWords RejectReads(const ReadWords& request) {
  return Words(0, 0, (request.ird & kPeerToPeerBit) != 0, Only(Kinds(request).Best()));
}

}  // namespace weft::llp
