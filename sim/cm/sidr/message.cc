#include "sim/cm/sidr/message.h"

#include "base/byte_writer.h"
#include "base/check.h"
#include "base/log.h"

namespace weft::sim {
namespace {

constexpr uint16_t kMagic = 0x5753;
constexpr uint8_t kVersion = 1;

}  // namespace

std::optional<SidrMessage> SidrMessage::Parse(ByteSpan datagram) {
  if (datagram.size() < kHeaderLength) return std::nullopt;
  ByteReader reader(datagram);
  if (reader.U16() != kMagic || reader.U8() != kVersion) return std::nullopt;
  SidrMessage message;
  const uint8_t type = reader.U8();
  if (type < static_cast<uint8_t>(Type::kRequest) || type > static_cast<uint8_t>(Type::kPending)) return std::nullopt;
  message.type = static_cast<Type>(type);
  message.transaction = reader.U64();
  const uint32_t status_and_number = reader.U32();
  message.status = static_cast<uint8_t>(status_and_number >> 24);
  message.number = status_and_number & 0xffffff;
  message.qkey = reader.U32();
  const uint16_t length = reader.U16();
  if (length > kMostPrivateData || length != reader.remaining()) return std::nullopt;
  const ByteSpan data = reader.Rest();
  message.private_data.assign(data.begin(), data.end());
  return message;
}

std::vector<uint8_t> SidrMessage::Serialize() const {
  WEFT_CHECK(private_data.size() <= kMostPrivateData);
  std::vector<uint8_t> bytes(kHeaderLength + private_data.size());
  ByteWriter writer(bytes);
  writer.U16(kMagic);
  writer.U8(kVersion);
  writer.U8(static_cast<uint8_t>(type));
  writer.U64(transaction);
  writer.U32(static_cast<uint32_t>(status) << 24 | (number & 0xffffff));
  writer.U32(qkey);
  writer.U16(static_cast<uint16_t>(private_data.size()));
  writer.Bytes(private_data);
  return bytes;
}

std::string SidrMessage::ToString() const {
  const char* const name = type == Type::kRequest ? "request" : type == Type::kReply ? "reply" : "pending";
  return Format("%s %016llx, status %u, QPN 0x%x, Q_Key 0x%x, %zu bytes of private data", name,
                static_cast<unsigned long long>(transaction), status, number, qkey, private_data.size());
}

}  // namespace weft::sim
