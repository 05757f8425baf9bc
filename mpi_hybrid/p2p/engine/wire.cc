#include "mpi_hybrid/p2p/engine/wire.h"

namespace weft::mpi {
std::optional<FrameHeader> FrameHeader::Parse(std::span<const uint8_t, kLength> bytes, bool numbered) {
  const uint8_t* at = bytes.data();
  if (at[0] < static_cast<uint8_t>(FrameKind::kEager) || at[0] > static_cast<uint8_t>(FrameKind::kFetched)) return std::nullopt;
  if ((at[1] & ~(kFlagSynchronous | kFlagRefused | kFlagExcuse | kFlagExternal)) != 0 || at[2] != 0 || at[3] != 0) return std::nullopt;
  FrameHeader header;
  header.kind = static_cast<FrameKind>(at[0]);
  header.flags = at[1];
  header.credit = Load32(at + 4);
  header.context = Load32(at + 8);
  header.tag = static_cast<int32_t>(Load32(at + 12));
  header.source = static_cast<int32_t>(Load32(at + 16));
  header.send_id = Load32(at + 20);
  header.receive_id = Load32(at + 24);
  header.number = Load32(at + 28);
  header.length = Load64(at + 32);
  if (header.tag < 0 || header.source < 0 || (header.number != 0 && !(numbered && IsMessage(header.kind))) || header.length > kMostLength) return std::nullopt;
  return header;
}

uint32_t FrameHeader::CreditOf(std::span<const uint8_t, kLength> bytes) { return Load32(bytes.data() + 4); }
uint32_t FrameHeader::ContextOf(std::span<const uint8_t, kLength> bytes) { return Load32(bytes.data() + 8); }
void FrameHeader::SetNumber(std::span<uint8_t, kLength> bytes, uint32_t number) { Store32(bytes.data() + 28, number); }
void FrameHeader::SetLength(std::span<uint8_t, kLength> bytes, uint64_t length) { Store64(bytes.data() + 32, length); }

}  // namespace weft::mpi
