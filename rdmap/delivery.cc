#include "rdmap/delivery.h"

#include "base/byte_writer.h"

namespace weft::rdmap {

std::optional<DeliveryMessage> DeliveryMessage::Parse(ByteSpan bytes) {
  if (bytes.size() < kLength) return std::nullopt;
  ByteReader reader(bytes);
  const uint8_t kind = reader.U8();
  if (kind > static_cast<uint8_t>(Kind::kTarget)) return std::nullopt;
  DeliveryMessage message;
  message.kind = static_cast<Kind>(kind);
  message.timer = reader.U8() & 31;
  reader.U16();
  message.sequence = reader.U32();
  message.send_msn = ddp::Msn(reader.U32());
  message.read_msn = ddp::Msn(reader.U32());
  return message;
}

size_t DeliveryMessage::Serialize(MutableByteSpan storage) const {
  ByteWriter writer(storage.first(kLength));
  writer.U8(static_cast<uint8_t>(kind));
  writer.U8(timer);
  writer.U16(0);
  writer.U32(sequence);
  writer.U32(send_msn.value);
  writer.U32(read_msn.value);
  return kLength;
}

}  // namespace weft::rdmap
