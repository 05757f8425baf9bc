#include "impi/message/sender.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace weft::impi {

using State = Outbound::State;

SendId Sender::Send(const Envelope& envelope, bool synchronous) {
  const SendId id(sends_.Add({.peer = peer_, .envelope = envelope, .synchronous = synchronous}));
  firsts_.push_back(id);
  return id;
}

// Section 3.7.4 has the time window: after the first packet, and before SYNCACK if one is to come. A short message without SYNCACK can be asked for as long
// as its request exists, because it may lie at the peer for long.
CancelOutcome Sender::Cancel(SendId id) {
  Outbound& send = sends_.Get(id.value);
  WEFT_CHECK(send.peer == peer_ && !send.released);
  if (send.asks()) return CancelOutcome::kAsked;
  if (send.state == State::kCancelled) return CancelOutcome::kCancelled;
  if (send.state == State::kQueued) {
    std::erase(firsts_, id);
    send.state = State::kCancelled;
    return CancelOutcome::kCancelled;
  }
  const bool eager = send.state == State::kDone && !NeedsSyncAck(send);
  if (send.cancel == Outbound::Cancel::kRefused || (send.state != State::kAwaiting && !eager)) return CancelOutcome::kTooLate;
  send.cancel = Outbound::Cancel::kQueued;
  cancels_.push_back(id);
  return CancelOutcome::kAsked;
}

void Sender::Release(SendId id) {
  Outbound& send = sends_.Get(id.value);
  WEFT_CHECK(send.peer == peer_ && !send.released);
  send.released = true;
  RemoveIfOver(id, send);
}

bool Sender::NeedsSyncAck(const Outbound& send) const { return send.synchronous || send.envelope.length > data_length_; }

// The number of a message must not be given again while a packet of the peer may name it.
void Sender::RemoveIfOver(SendId id, const Outbound& send) {
  const bool over = send.state == State::kDone || send.state == State::kCancelled;
  if (send.released && over && !send.asks()) sends_.Remove(id.value);
}

Packet Sender::TakeCancel(Outgoing& out) {
  WEFT_CHECK(has_cancels());
  const SendId id = cancels_.front();
  cancels_.pop_front();
  sends_.Get(id.value).cancel = Outbound::Cancel::kAsked;
  out.send = id;
  return {.type = PacketType::kCancel, .source_request = id.value};
}

Packet Sender::TakeData(bool may_be_first, Outgoing& out) {
  const bool first = may_be_first && has_firsts();
  WEFT_CHECK(first || has_rests());
  const bool rest = has_rests() && (rest_is_next_ || !first || kind_ == Peer::kLam);
  rest_is_next_ = !rest;
  return rest ? TakeRest(out) : TakeFirst(out);
}

Packet Sender::TakeFirst(Outgoing& out) {
  const SendId id = firsts_.front();
  firsts_.pop_front();
  Outbound& send = sends_.Get(id.value);
  send.sequence = ++sequence_;
  Packet packet = DataOf(id, send, out);
  const bool awaits = NeedsSyncAck(send);
  packet.type = awaits ? PacketType::kDataSync : PacketType::kData;
  send.state = awaits ? State::kAwaiting : State::kDone;
  RemoveIfOver(id, send);
  return packet;
}

Packet Sender::TakeRest(Outgoing& out) {
  const SendId id = rests_.front();
  Outbound& send = sends_.Get(id.value);
  Packet packet = DataOf(id, send, out);
  packet.destination_request = send.their_number;
  if (out.last) {
    rests_.pop_front();
    send.state = State::kDone;
    RemoveIfOver(id, send);
  }
  return packet;
}

Packet Sender::DataOf(SendId id, Outbound& send, Outgoing& out) const {
  const Envelope& envelope = send.envelope;
  out.send = id;
  out.offset = send.taken;
  out.length = static_cast<uint32_t>(std::min<uint64_t>(data_length_, envelope.length - send.taken));
  send.taken += out.length;
  out.last = send.taken == envelope.length;
  return {.type = PacketType::kData,
          .data_length = out.length,
          .source_request = id.value,
          .message_length = envelope.length,
          .source_rank = envelope.rank,
          .tag = envelope.tag,
          .context = envelope.context,
          .sequence = send.sequence,
          .count = envelope.count,
          .datatype = envelope.datatype};
}

const char* Sender::WhyNoSyncAck(const Outbound& send) const {
  if (send.state == State::kQueued) return "a message that was not sent yet";
  if (send.state == State::kCancelled) return "a message that was cancelled (CANCELYES)";
  return NeedsSyncAck(send) ? "a message that has its SYNCACK already" : "a message that asked for no SYNCACK";
}

Result<Event, Complaint> Sender::OnSyncAck(const Packet& packet) {
  const SendId id(packet.source_request);
  Outbound* send = sends_.Find(id.value);
  if (send == nullptr || send->peer != peer_) {
    return Complaint{"pk_srqid", "is " + std::to_string(id.value) + ", which is no message to it that waits for an answer"};
  }
  if (send->state != State::kAwaiting) return Complaint{"pk_srqid", "is " + std::to_string(id.value) + ", " + WhyNoSyncAck(*send)};
  const bool whole = send->taken == send->envelope.length;
  send->state = whole ? State::kDone : State::kContinuing;
  send->their_number = packet.destination_request;
  if (!whole) rests_.push_back(id);
  RemoveIfOver(id, *send);
  return Event{.kind = Event::Kind::kSynchronized, .peer = peer_, .send = id};
}

Result<Event, Complaint> Sender::OnCancelReply(const Packet& packet) {
  const SendId id(packet.source_request);
  Outbound* send = sends_.Find(id.value);
  if (send == nullptr || send->peer != peer_ || send->cancel != Outbound::Cancel::kAsked) {
    return Complaint{"pk_srqid", "is " + std::to_string(id.value) + ", which is no message to it that a CANCEL asked for"};
  }
  const bool cancelled = packet.type == PacketType::kCancelYes;
  const bool matched = send->state == State::kContinuing || (send->state == State::kDone && NeedsSyncAck(*send));
  if (cancelled && matched) return Complaint{"pk_srqid", "is " + std::to_string(id.value) + ", a message that a receive has matched (SYNCACK)"};
  send->cancel = cancelled ? Outbound::Cancel::kNone : Outbound::Cancel::kRefused;
  if (cancelled) send->state = State::kCancelled;
  RemoveIfOver(id, *send);
  return Event{.kind = cancelled ? Event::Kind::kCancelled : Event::Kind::kNotCancelled, .peer = peer_, .send = id};
}

}  // namespace weft::impi
