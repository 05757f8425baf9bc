#include "impi/message/departures.h"

#include "base/byte_writer.h"

namespace weft::impi {
namespace {

constexpr size_t kLengthAt = 4, kMessageLengthAt = 72;  // bytes from the front of a header
constexpr size_t kFieldsOfMessage = 40;                 // bytes: from pk_msglen to pk_count

}  // namespace

void SerializeFor(Peer peer, Packet packet, uint64_t number, std::span<uint8_t, Packet::kSize> into) {
  if (peer == Peer::kLam) packet.sequence = number;
  packet.Serialize(into);
  if (peer != Peer::kLam || packet.has_data()) return;
  ByteWriter length(into.subspan(kLengthAt, sizeof(uint32_t)));
  length.U32(Packet::kSize);
  ByteWriter message(into.subspan(kMessageLengthAt, kFieldsOfMessage));
  message.U64(Packet::kSize);
  message.U32(~uint32_t{0});
  message.U32(~uint32_t{0});
  message.U64(0);
  message.U64(number);
  message.U64(~uint64_t{0});
  WEFT_CHECK(message.room() == 0);
}

Packet FiniFor(Peer peer) {
  Packet packet{.type = PacketType::kFini};
  if (peer == Peer::kLam) packet.source.number = packet.destination.number = -1;
  return packet;
}

}  // namespace weft::impi
