#include "impi/agent/inlet.h"

#include <algorithm>
#include <cstring>

namespace weft::impi {
namespace {

size_t Move(ByteSpan& from, std::span<uint8_t> into) {
  const size_t count = std::min(from.size(), into.size());
  if (count != 0) std::memcpy(into.data(), from.data(), count);
  from = from.subspan(count);
  return count;
}

}  // namespace

Result<std::optional<CarriedPacket>, std::string> Inlet::Take(ByteSpan& bytes) {
  if (!packet_) {
    came_ += Move(bytes, std::span(header_).subspan(came_));
    if (came_ < Packet::kSize) return std::optional<CarriedPacket>();
    const auto header = Packet::Parse(header_, limits_);
    if (!header.ok()) return header.error();
    packet_.emplace(*header, store_);
  }
  came_ += Move(bytes, packet_->data().subspan(came_ - Packet::kSize));
  if (came_ < packet_->size()) return std::optional<CarriedPacket>();
  came_ = 0;
  return std::exchange(packet_, std::nullopt);
}

}  // namespace weft::impi
