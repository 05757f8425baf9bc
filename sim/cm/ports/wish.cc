#include "sim/cm/ports/wish.h"

#include "base/byte_writer.h"

namespace weft::sim {
namespace {

constexpr uint64_t kMagic = 0x576566745150434e;

}  // namespace

std::vector<uint8_t> Wish::Serialize() const {
  std::vector<uint8_t> bytes(kLength);
  ByteWriter writer(bytes);
  writer.U64(kMagic);
  writer.U32(to);
  writer.U32(from);
  writer.U32(static_cast<uint32_t>(service) << 24 | receive_number);
  writer.U32(send_number);
  return bytes;
}

std::optional<Wish> Wish::Parse(ByteSpan bytes) {
  if (bytes.size() != kLength) return std::nullopt;
  ByteReader reader(bytes);
  if (reader.U64() != kMagic) return std::nullopt;
  Wish wish;
  wish.to = reader.U32();
  wish.from = reader.U32();
  const uint32_t service_and_number = reader.U32();
  wish.service = static_cast<Service>(service_and_number >> 24);
  wish.receive_number = service_and_number & kMostSequence;
  wish.send_number = reader.U32() & kMostSequence;
  return wish;
}

}  // namespace weft::sim
