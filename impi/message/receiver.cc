#include "impi/message/receiver.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace weft::impi {

// DATA that holds less than its message continues one. A short message is in one packet, with equal lengths (3.7.1).
Result<Event, Complaint> Receiver::OnData(const Packet& packet) {
  if (packet.type == PacketType::kData && packet.data_length < packet.message_length) return OnRest(packet);
  return OnFirst(packet);
}

Event Receiver::OnFirst(const Packet& packet) {
  if (discards_) return {.kind = Event::Kind::kDropped, .peer = peer_, .length = packet.data_length};
  const uint64_t cost = flow_.CostOf(packet.data_length);
  const MessageId id(messages_.Add({.peer = peer_,
                                    .envelope = {.context = packet.context,
                                                 .rank = packet.source_rank,
                                                 .tag = packet.tag,
                                                 .length = packet.message_length,
                                                 .count = packet.count,
                                                 .datatype = packet.datatype},
                                    .their_number = packet.source_request,
                                    .synchronous = packet.type == PacketType::kDataSync,
                                    .arrived = packet.data_length,
                                    .cost = cost}));
  flow_.Hold(cost);
  last_by_number_[packet.source_request] = id;
  return {.kind = Event::Kind::kMessage,
          .peer = peer_,
          .message = id,
          .length = packet.data_length,
          .keep = packet.data_length,
          .last = packet.data_length == packet.message_length};
}

Result<Event, Complaint> Receiver::OnRest(const Packet& packet) {
  const MessageId id(packet.destination_request);
  Inbound* message = messages_.Find(id.value);
  const auto drqid = [&](const std::string& why) { return Complaint{"pk_drqid", "is " + std::to_string(id.value) + ", " + why}; };
  if (message == nullptr || message->peer != peer_) return drqid("which is no message of it of which data is missing");
  if (!message->matched) return drqid("a message for which no SYNCACK was sent");
  if (packet.source_request != message->their_number) {
    return Complaint{"pk_srqid", "is " + std::to_string(packet.source_request) + "; the message began with " + std::to_string(message->their_number)};
  }
  const uint64_t length = message->envelope.length, missing = length - message->arrived;
  if (packet.message_length != length) {
    return Complaint{"pk_msglen", "is " + std::to_string(packet.message_length) + "; the message began with " + std::to_string(length)};
  }
  if (packet.data_length == 0 || packet.data_length > missing) {
    return Complaint{"pk_len", "is " + std::to_string(packet.data_length) + "; the message lacks " + std::to_string(missing) + " bytes"};
  }
  const uint64_t room = message->room - std::min(message->room, message->arrived);
  const Event event{.kind = Event::Kind::kPart,
                    .peer = peer_,
                    .message = id,
                    .offset = message->arrived,
                    .length = packet.data_length,
                    .keep = static_cast<uint32_t>(std::min<uint64_t>(room, packet.data_length)),
                    .last = packet.data_length == missing};
  message->arrived += packet.data_length;
  if (event.last) messages_.Remove(id.value);
  return event;
}

Matched Receiver::Match(MessageId id, uint64_t room, std::optional<Answer>& answer) {
  Inbound& message = messages_.Get(id.value);
  WEFT_CHECK(message.peer == peer_ && !message.matched);
  ForgetNumber(id, message);
  flow_.Unhold(message.cost);
  message.matched = true;
  message.room = room;
  const uint64_t length = message.envelope.length;
  const Matched matched{.whole = message.arrived == length, .truncated = room < length};
  if (message.synchronous) {
    answer = {.type = PacketType::kSyncAck, .source_request = message.their_number, .destination_request = matched.whole ? 0 : id.value};
  }
  if (matched.whole) messages_.Remove(id.value);
  return matched;
}

void Receiver::Claim(MessageId id) {
  const Inbound& message = messages_.Get(id.value);
  WEFT_CHECK(message.peer == peer_ && !message.matched);
  ForgetNumber(id, message);
}

std::optional<MessageId> Receiver::WithdrawnBy(uint64_t number) const {
  const auto last = last_by_number_.find(number);
  return last == last_by_number_.end() ? std::nullopt : std::optional(last->second);
}

Event Receiver::OnCancel(const Packet& packet, Answer& answer) {
  answer = {.type = PacketType::kCancelNo, .source_request = packet.source_request};
  const auto last = last_by_number_.find(packet.source_request);
  if (last == last_by_number_.end()) return {.kind = Event::Kind::kNone, .peer = peer_};
  answer.type = PacketType::kCancelYes;
  const MessageId id = last->second;
  flow_.Unhold(messages_.Get(id.value).cost);
  last_by_number_.erase(last);
  messages_.Remove(id.value);
  return {.kind = Event::Kind::kWithdrawn, .peer = peer_, .message = id};
}

void Receiver::Discard() {
  discards_ = true;
  last_by_number_.clear();
  std::vector<uint64_t> held;
  messages_.ForEach([&](uint64_t id, Inbound& message) {
    if (message.peer == peer_ && !message.matched) held.push_back(id);
  });
  for (const uint64_t id : held) {
    flow_.Unhold(messages_.Get(id).cost);
    messages_.Remove(id);
  }
}

void Receiver::ForgetNumber(MessageId id, const Inbound& message) {
  const auto last = last_by_number_.find(message.their_number);
  if (last != last_by_number_.end() && last->second == id) last_by_number_.erase(last);
}

}  // namespace weft::impi
