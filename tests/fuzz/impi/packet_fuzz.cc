// A header of a peer's agent: what is accepted keeps to the limits, and is read the same when it is written again.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "impi/wire/packet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  if (size < Packet::kSize) return 0;
  constexpr PacketLimits kLimits{.data_length = 1000, .tag = 32767};
  const auto packet = Packet::Parse(std::span<const uint8_t, Packet::kSize>(data, Packet::kSize), kLimits);
  if (!packet.ok()) {
    WEFT_CHECK(!packet.error().empty());
    return 0;
  }
  const Packet& header = *packet;
  WEFT_CHECK(header.type <= kLastPacketType && header.data_length <= kLimits.data_length && header.data_length <= header.message_length);
  WEFT_CHECK(header.tag >= 0 && header.tag <= kLimits.tag && header.source_rank >= 0);
  std::array<uint8_t, Packet::kSize> again;
  header.Serialize(again);
  WEFT_CHECK(Packet::Parse(again, kLimits).value() == header);
  return 0;
}
