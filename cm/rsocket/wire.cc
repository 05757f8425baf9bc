#include "cm/rsocket/wire.h"

#include <algorithm>

namespace weft::rsocket {
namespace {

uint64_t Load(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (const uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

void Store(uint64_t value, std::span<uint8_t> bytes) {
  for (size_t i = bytes.size(); i-- > 0; value >>= 8) bytes[i] = static_cast<uint8_t>(value);
}

Target LoadTarget(std::span<const uint8_t> bytes) {
  return {Load(bytes.subspan(0, 8)), static_cast<uint32_t>(Load(bytes.subspan(8, 4))),
          static_cast<uint32_t>(Load(bytes.subspan(12, 4)))};
}

void StoreTarget(const Target& target, std::span<uint8_t> bytes) {
  Store(target.address, bytes.subspan(0, 8));
  Store(target.key, bytes.subspan(8, 4));
  Store(target.length, bytes.subspan(12, 4));
}

// A byte's upper bit says that the rest counts multiples of 256.
constexpr uint8_t kMultiples = 0x80;

uint8_t ToScale(uint16_t entries) {
  return static_cast<uint8_t>(entries <= kMultiples ? entries : kMultiples | entries >> 8);
}

uint16_t FromScale(uint8_t scale) {
  return static_cast<uint16_t>(scale <= kMultiples ? scale : (scale & ~kMultiples) << 8);
}

}  // namespace

uint16_t ScaledMapEntries(uint32_t entries) {
  if (entries <= kMultiples) return static_cast<uint16_t>(entries);
  if (entries < 256) return kMultiples;
  return static_cast<uint16_t>(std::min<uint32_t>(entries >> 8, 0x7f) << 8);
}

std::optional<ConnectData> ConnectData::Parse(std::span<const uint8_t> bytes) {
  if (bytes.size() < kSize || bytes[0] != kVersion) return std::nullopt;
  ConnectData data;
  data.big_endian = (bytes[1] & kBigEndianFlag) != 0;
  data.credits = static_cast<uint16_t>(Load(bytes.subspan(2, 2)));
  if ((bytes[1] & kMapFlag) != 0) data.map_entries = FromScale(bytes[7]);
  data.target_list = LoadTarget(bytes.subspan(8, 16));
  data.buffer = LoadTarget(bytes.subspan(24, 16));
  return data;
}

void ConnectData::Serialize(std::span<uint8_t, kSize> bytes) const {
  std::fill(bytes.begin(), bytes.end(), 0);
  bytes[0] = kVersion;
  bytes[1] = static_cast<uint8_t>(kMapFlag | (big_endian ? kBigEndianFlag : 0));
  Store(credits, bytes.subspan(2, 2));
  bytes[7] = ToScale(map_entries);
  StoreTarget(target_list, bytes.subspan(8, 16));
  StoreTarget(buffer, bytes.subspan(24, 16));
}

uint32_t Swapped(uint32_t raw, bool swap) { return swap ? __builtin_bswap32(raw) : raw; }

Target Swapped(const Target& target, bool swap) {
  if (!swap) return target;
  return {__builtin_bswap64(target.address), __builtin_bswap32(target.key), __builtin_bswap32(target.length)};
}

IoMapEntry Swapped(const IoMapEntry& entry, bool swap) {
  if (!swap) return entry;
  return {__builtin_bswap64(entry.offset), Swapped(entry.target, true)};
}

}  // namespace weft::rsocket
