#include "impi/message/pair.h"

#include <string>

#include "base/check.h"
#include "impi/message/departures.h"

namespace weft::impi {

Pair::Pair(PeerId id, const ProcessName& self, const ProcessName& peer, Peer kind, const FlowLimits& limits, uint32_t data_length, Handles<Outbound>& sends,
           Handles<Inbound>& messages)
    : self_(self),
      peer_(peer),
      kind_(kind),
      flow_in_(limits, data_length),
      flow_out_(limits),
      sender_(id, kind, data_length, sends),
      receiver_(id, flow_in_, messages) {
  WEFT_CHECK(limits.ack_mark >= 1 && limits.ack_mark <= limits.high_water);
}

bool Pair::has_output() const {
  if (lost_) return false;
  if (flow_in_.owes_ack()) return true;
  if (fini_sent_ || flow_out_.is_full()) return false;
  return !answers_.empty() || sender_.has_cancels() || sender_.has_rests() || (sender_.has_firsts() && flow_out_.may_send_first());
}

std::optional<Outgoing> Pair::Next() {
  if (!has_output()) return std::nullopt;
  Outgoing out;
  Packet packet = Take(out);
  packet.source = self_;
  packet.destination = peer_;
  out.type = packet.type;
  if (Counts(packet.type)) flow_out_.Count(packet.has_data() && out.offset == 0);
  SerializeFor(kind_, packet, ++packets_, out.header);
  return out;
}

Packet Pair::Take(Outgoing& out) {
  if (flow_in_.owes_ack()) {
    flow_in_.TakeAck();
    return {.type = PacketType::kProtocolAck};
  }
  if (!answers_.empty()) {
    const Answer answer = answers_.front();
    answers_.pop_front();
    return {.type = answer.type, .source_request = answer.source_request, .destination_request = answer.destination_request};
  }
  if (sender_.has_cancels()) return sender_.TakeCancel(out);
  return sender_.TakeData(flow_out_.may_send_first(), out);
}

Result<Event, Complaint> Pair::OnPacket(const Packet& packet) {
  if (const std::optional<Complaint> refusal = Refusal(packet)) return *refusal;
  Result<Event, Complaint> event = Handle(packet);
  if (event.ok() && Counts(packet.type)) flow_in_.Count();
  return event;
}

std::optional<Complaint> Pair::Refusal(const Packet& packet) const {
  if (lost_) return Complaint{"pk_src", "is a process that has left"};
  WEFT_CHECK(packet.type != PacketType::kFini);  // Endpoint refuses it
  const bool answers = packet.type == PacketType::kProtocolAck || packet.type == PacketType::kSyncAck;
  if (fini_came_ && !answers) {
    return Complaint{"pk_type", "is " + std::to_string(static_cast<uint32_t>(packet.type)) + "; after FINI only acknowledgments may come"};
  }
  if (Counts(packet.type) && flow_in_.is_full()) {
    return Complaint{"pk_type", "is " + std::to_string(static_cast<uint32_t>(packet.type)) + "; it is one packet more than the " +
                                    std::to_string(flow_in_.unacknowledged()) + " without PROTOACK that the hosts agreed on (IMPI_H_HIWATER)"};
  }
  const bool asks = packet.type == PacketType::kDataSync || packet.type == PacketType::kCancel;
  if (asks && answers_.size() >= kMostAnswers) {
    return Complaint{"pk_type", "is " + std::to_string(static_cast<uint32_t>(packet.type)) + "; " + std::to_string(answers_.size()) +
                                    " answers wait until it acknowledges packets (PROTOACK)"};
  }
  return std::nullopt;
}

Result<Event, Complaint> Pair::Handle(const Packet& packet) {
  switch (packet.type) {
    case PacketType::kData:
    case PacketType::kDataSync:
      return receiver_.OnData(packet);
    case PacketType::kProtocolAck:
      if (flow_out_.OnAck()) break;
      return Complaint{"pk_type", "is 2; only " + std::to_string(flow_out_.sent()) +
                                      " packets to it are unacknowledged, less than the hosts agreed on (IMPI_H_ACKMARK)"};
    case PacketType::kSyncAck:
      return sender_.OnSyncAck(packet);
    case PacketType::kCancel: {
      Answer answer;
      const Event event = receiver_.OnCancel(packet, answer);
      answers_.push_back(answer);
      return event;
    }
    case PacketType::kCancelYes:
    case PacketType::kCancelNo:
      return sender_.OnCancelReply(packet);
    case PacketType::kFini:
      WEFT_CHECK(false);
  }
  return Event{};
}

Matched Pair::Match(MessageId id, uint64_t room) {
  std::optional<Answer> answer;
  const Matched matched = receiver_.Match(id, room, answer);
  if (answer) answers_.push_back(*answer);
  return matched;
}

CancelOutcome Pair::Cancel(SendId id) {
  if (fini_sent_) return CancelOutcome::kTooLate;
  return sender_.Cancel(id);
}

void Pair::OnFiniSent() {
  WEFT_CHECK(is_quiet());
  fini_sent_ = true;
}

}  // namespace weft::impi
