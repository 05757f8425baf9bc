#include "wires/sctp/locator/message.h"

#include "base/byte_writer.h"

namespace weft::sctp {
namespace {

constexpr uint16_t kMagic = 'W' << 8 | 'P';
constexpr uint8_t kVersion = 1;

}  // namespace

std::optional<LocatorMessage> LocatorMessage::Parse(ByteSpan datagram) {
  if (datagram.size() != kLength) return std::nullopt;
  ByteReader reader(datagram);
  if (reader.U16() != kMagic || reader.U8() != kVersion) return std::nullopt;
  LocatorMessage message;
  message.type = static_cast<Type>(reader.U8());
  message.transaction = reader.U64();
  message.sctp_port = reader.U16();
  message.udp_port = reader.U16();
  if (message.type != Type::kQuestion && message.type != Type::kAnswer) return std::nullopt;
  if (message.sctp_port == 0 || (message.type == Type::kAnswer) != (message.udp_port != 0)) return std::nullopt;
  return message;
}

std::array<uint8_t, LocatorMessage::kLength> LocatorMessage::Serialize() const {
  std::array<uint8_t, kLength> bytes;
  ByteWriter writer(bytes);
  writer.U16(kMagic);
  writer.U8(kVersion);
  writer.U8(static_cast<uint8_t>(type));
  writer.U64(transaction);
  writer.U16(sctp_port);
  writer.U16(udp_port);
  return bytes;
}

}  // namespace weft::sctp
