#include "impi/message/endpoint.h"

#include <algorithm>
#include <array>

#include "base/byte_reader.h"
#include "base/check.h"

namespace weft::impi {
namespace {

// Of any header: what Packet::Parse does not check is the same in a packet without data.
ProcessName SourceOf(std::span<const uint8_t, Packet::kSize> header, const PacketLimits& limits) {
  std::array<uint8_t, Packet::kSize> bare{};
  std::copy(header.begin() + sizeof(uint32_t), header.end(), bare.begin() + sizeof(uint32_t));
  bare[sizeof(uint32_t) - 1] = static_cast<uint8_t>(PacketType::kProtocolAck);
  return Packet::Parse(bare, limits).value().source;
}

PacketError ErrorOf(const Packet& packet, const Complaint& complaint) {
  return {.process = packet.source,
          .field = complaint.field,
          .text = TextOf(packet.source) + " sent " + NameOf(packet.type) + ": " + complaint.field + " " + complaint.why};
}

}  // namespace

Endpoint::Endpoint(const ProcessName& self, const PacketLimits& limits) : self_(self), limits_(limits) { WEFT_CHECK(limits.data_length >= 1); }

PeerId Endpoint::AddPeer(const ProcessName& process, Peer kind, const FlowLimits& limits) {
  const PeerId id(static_cast<uint32_t>(pairs_.size()));
  WEFT_CHECK(process != self_ && peers_.emplace(process, id).second);
  pairs_.emplace_back(id, self_, process, kind, limits, limits_.data_length, sends_, messages_);
  return id;
}

std::optional<PeerId> Endpoint::FindPeer(const ProcessName& process) const {
  const auto found = peers_.find(process);
  return found == peers_.end() ? std::nullopt : std::optional(found->second);
}

SendId Endpoint::Send(PeerId peer, const Envelope& envelope, bool synchronous) {
  Pair& pair = pairs_[peer.value];
  WEFT_CHECK(!finished_ && !pair.is_lost() && envelope.rank >= 0 && envelope.tag >= 0 && envelope.tag <= limits_.tag);
  return pair.sender().Send(envelope, synchronous);
}

CancelOutcome Endpoint::Cancel(SendId send) { return pairs_[sends_.Get(send.value).peer.value].Cancel(send); }

void Endpoint::Release(SendId send) { pairs_[sends_.Get(send.value).peer.value].sender().Release(send); }

Result<Event, PacketError> Endpoint::OnHeader(std::span<const uint8_t, Packet::kSize> header) {
  const auto packet = Packet::Parse(header, limits_);
  if (packet.ok()) return OnPacket(*packet);
  const std::string& why = packet.error();  // begins with the field
  const ProcessName source = SourceOf(header, limits_);
  return PacketError{.process = source, .field = why.substr(0, why.find(' ')), .text = TextOf(source) + " sent a wrong packet: " + why};
}

Result<Event, PacketError> Endpoint::OnPacket(const Packet& packet) {
  if (packet.type == PacketType::kFini) return ErrorOf(packet, {"pk_type", "is 7, which is for agents"});
  const std::optional<PeerId> peer = FindPeer(packet.source);
  if (!peer) return ErrorOf(packet, {"pk_src", "is no process of another client of this job"});
  if (packet.destination != self_) return ErrorOf(packet, {"pk_dest", "is " + TextOf(packet.destination) + "; the packet came to " + TextOf(self_)});
  const Result<Event, Complaint> event = pairs_[peer->value].OnPacket(packet);
  if (!event.ok()) return ErrorOf(packet, event.error());
  return *event;
}

Matched Endpoint::Match(MessageId message, uint64_t room) { return pairs_[messages_.Get(message.value).peer.value].Match(message, room); }

void Endpoint::Claim(MessageId message) { pairs_[messages_.Get(message.value).peer.value].Claim(message); }

std::optional<MessageId> Endpoint::WithdrawnBy(std::span<const uint8_t, Packet::kSize> header) const {
  if (ByteReader(header).U32() != static_cast<uint32_t>(PacketType::kCancel)) return std::nullopt;
  const auto packet = Packet::Parse(header, limits_);
  const std::optional<PeerId> peer = packet.ok() ? FindPeer(packet->source) : std::nullopt;
  return peer ? pairs_[peer->value].WithdrawnBy(packet->source_request) : std::nullopt;
}

void Endpoint::Finish() {
  finished_ = true;
  for (Pair& pair : pairs_) pair.Discard();
}

size_t Endpoint::Unanswered(PeerId peer) {
  size_t count = 0;
  sends_.ForEach([&](uint64_t, const Outbound& send) { count += send.peer == peer && (send.state == Outbound::State::kAwaiting || send.asks()); });
  return count;
}

void Endpoint::OnFiniSent(PeerId peer) {
  WEFT_CHECK(finished_);
  pairs_[peer.value].OnFiniSent();
}

Endpoint::Lost Endpoint::Lose(PeerId peer) {
  pairs_[peer.value].Lose();
  Lost lost;
  std::vector<SendId> sends;
  sends_.ForEach([&](uint64_t id, const Outbound& send) {
    if (send.peer != peer) return;
    sends.emplace_back(id);
    if (!send.released) lost.sends.emplace_back(id);
  });
  messages_.ForEach([&](uint64_t id, const Inbound& message) {
    if (message.peer == peer) lost.messages.emplace_back(id);
  });
  for (const SendId id : sends) sends_.Remove(id.value);
  for (const MessageId id : lost.messages) messages_.Remove(id.value);
  return lost;
}

}  // namespace weft::impi
