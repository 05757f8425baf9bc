#include "mpi_hybrid/p2p/partition_map.h"

#include <algorithm>

#include "mpi_hybrid/p2p/engine/channel.h"
#include "mpi_hybrid/p2p/engine/little_endian.h"
#include "mpi_hybrid/p2p/engine/wire.h"

namespace weft::mpi {

std::optional<PartitionAnnouncement> PartitionAnnouncement::Parse(std::span<const uint8_t, kLength> bytes) {
  const PartitionAnnouncement parsed = {Load32(&bytes[0]), Load32(&bytes[4]), Load64(&bytes[8])};
  if (parsed.partitions > kMostPartitions || parsed.stream >= kMostPartitioned) return std::nullopt;
  if (parsed.bytes > FrameHeader::kMostLength / std::max(parsed.partitions, 1u)) return std::nullopt;
  return parsed;
}

void PartitionAnnouncement::SerializeTo(std::span<uint8_t, kLength> to) const {
  Store32(&to[0], partitions);
  Store32(&to[4], stream);
  Store64(&to[8], bytes);
}

PartitionMap::PartitionMap(size_t sent, uint64_t sent_bytes, size_t received, uint64_t received_bytes)
    : sent_(sent),
      sent_bytes_(sent_bytes),
      received_bytes_(received_bytes),
      alike_(sent == received && sent_bytes == received_bytes),
      by_bytes_(alike_ || (sent_bytes != 0 && received_bytes != 0)) {
  if (!by_bytes_) return;
  all_missing_.resize(received);
  for (size_t s = 0; s < sent; ++s) {
    const Range range = Of(s);
    for (size_t r = range.first; r < range.last; ++r) ++all_missing_[r];
  }
}

PartitionMap::Range PartitionMap::Of(size_t sent) const {
  if (alike_) return {sent, sent + 1};
  const uint64_t from = sent * sent_bytes_, to = from + sent_bytes_;
  return {std::min<size_t>(from / received_bytes_, all_missing_.size()),
          std::min<size_t>((to - 1) / received_bytes_ + 1, all_missing_.size())};
}

void PartitionMap::Restart() {
  left_ = sent_;
  missing_ = all_missing_;
}

void PartitionMap::Arrived(size_t sent) {
  --left_;
  if (!by_bytes_) return;
  const Range range = Of(sent);
  for (size_t r = range.first; r < range.last; ++r) --missing_[r];
}

}  // namespace weft::mpi
