#include "impi/message/testing/process.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace weft::impi {

SendId TestProcess::Send(PeerId peer, const Envelope& envelope, Bytes bytes, bool synchronous) {
  Envelope whole = envelope;
  whole.length = bytes.size();
  const SendId id = endpoint.Send(peer, whole, synchronous);
  sends[id] = {.bytes = std::move(bytes), .synchronous = synchronous};
  return id;
}

CancelOutcome TestProcess::Cancel(SendId id) {
  const CancelOutcome outcome = endpoint.Cancel(id);
  if (outcome == CancelOutcome::kCancelled) sends[id].cancelled = true;
  return outcome;
}

ReceiveId TestProcess::Post(const Wanted& wanted, size_t room) {
  const ReceiveId id(++receive_);
  receives[id].room = room;
  if (const auto message = matching.Post(id, wanted)) Give(*message, id);
  return id;
}

std::optional<MessageId> TestProcess::MatchedProbe(const Wanted& wanted) {
  const std::optional<MessageId> message = matching.Probe(wanted);
  if (!message) return message;
  WEFT_CHECK(matching.TakeOut(*message));
  endpoint.Claim(*message);
  return message;
}

ReceiveId TestProcess::Receive(MessageId message, size_t room) {
  const ReceiveId id(++receive_);
  receives[id].room = room;
  Give(message, id);
  return id;
}

Bytes TestProcess::Take(PeerId peer) {
  const std::optional<Outgoing> out = endpoint.Next(peer);
  if (!out) return {};
  Bytes frame(out->header.begin(), out->header.end());
  if (out->type != PacketType::kData && out->type != PacketType::kDataSync) return frame;
  Sending& send = sends.at(out->send);
  WEFT_CHECK(out->offset + out->length <= send.bytes.size() && !send.taken && !send.cancelled);
  const auto from = send.bytes.begin() + static_cast<ptrdiff_t>(out->offset);
  frame.insert(frame.end(), from, from + out->length);
  send.taken = out->last;
  return frame;
}

std::string TestProcess::On(const Bytes& frame) {
  WEFT_CHECK(frame.size() >= Packet::kSize);
  const auto event = endpoint.OnHeader(std::span<const uint8_t, Packet::kSize>(frame.data(), Packet::kSize));
  if (!event.ok()) return event.error().text;
  WEFT_CHECK(event->length == frame.size() - Packet::kSize);
  Handle(*event, frame.data() + Packet::kSize);
  return "";
}

void TestProcess::Handle(const Event& event, const uint8_t* data) {
  switch (event.kind) {
    case Event::Kind::kNone:
    case Event::Kind::kDropped:
      break;
    case Event::Kind::kMessage: {
      held_[event.message] = {event.peer, Bytes(data, data + event.length)};
      const Envelope& envelope = endpoint.MessageOf(event.message).envelope;
      if (const auto receive = matching.Arrived(event.message, event.peer, envelope.context, envelope.tag)) Give(event.message, *receive);
      break;
    }
    case Event::Kind::kPart: {
      const auto found = arriving_.find(event.message);
      WEFT_CHECK(found != arriving_.end());
      Receiving& receive = receives.at(found->second);
      Store(receive, event.offset, data, event.keep);
      if (!event.last) break;
      receive.complete = true;
      arriving_.erase(found);
      break;
    }
    case Event::Kind::kWithdrawn:
      WEFT_CHECK(matching.TakeOut(event.message));
      WEFT_CHECK(held_.erase(event.message) == 1);
      break;
    case Event::Kind::kSynchronized:
      sends.at(event.send).synchronized = true;
      break;
    case Event::Kind::kCancelled:
      sends.at(event.send).cancelled = true;
      break;
    case Event::Kind::kNotCancelled:
      sends.at(event.send).refused = true;
      break;
  }
}

void TestProcess::Give(MessageId message, ReceiveId id) {
  Receiving& receive = receives.at(id);
  const Inbound inbound = endpoint.MessageOf(message);
  const Matched matched = endpoint.Match(message, receive.room);
  receive.envelope = inbound.envelope;
  receive.source = inbound.peer;
  receive.matched = true;
  receive.truncated = matched.truncated;
  receive.complete = matched.whole;
  matches.push_back(id);
  const Bytes stored = std::move(held_.at(message).bytes);
  held_.erase(message);
  Store(receive, 0, stored.data(), std::min(stored.size(), receive.room));
  if (!matched.whole) arriving_[message] = id;
}

void TestProcess::Store(Receiving& receive, uint64_t offset, const uint8_t* bytes, size_t count) {
  if (count == 0) return;
  WEFT_CHECK(offset == receive.bytes.size() && offset + count <= receive.room);
  receive.bytes.insert(receive.bytes.end(), bytes, bytes + count);
}

void TestProcess::Finish() {
  endpoint.Finish();
  for (const auto& [message, held] : held_) matching.TakeOut(message);
  held_.clear();
}

size_t TestProcess::HeldBytes(PeerId peer) const {
  size_t bytes = 0;
  for (const auto& [message, held] : held_) bytes += held.source == peer ? held.bytes.size() : 0;
  return bytes;
}

}  // namespace weft::impi
