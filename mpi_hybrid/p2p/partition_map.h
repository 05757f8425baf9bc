#ifndef MPI_HYBRID_P2P_PARTITION_MAP_H_
#define MPI_HYBRID_P2P_PARTITION_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weft::mpi {

// The announcement that the sender of partitioned communication sends once, before its first partition. Little-endian.
//
//  0                4                8                               16
//  +----------------+----------------+-------------------------------+
//  | partitions     | stream         | bytes of each partition       |
//  +----------------+----------------+-------------------------------+
struct PartitionAnnouncement {
  static constexpr size_t kLength = 16;
  // each partition is a message, and a receiver has a receive for each
  static constexpr uint32_t kMostPartitions = 1 << 20;

  uint32_t partitions = 0;
  uint32_t stream = 0;  // PartitionChannel
  uint64_t bytes = 0;

  // nullopt: more partitions, streams or bytes than allowed.
  static std::optional<PartitionAnnouncement> Parse(std::span<const uint8_t, kLength> bytes);
  void SerializeTo(std::span<uint8_t, kLength> bytes) const;
  uint64_t total() const { return partitions * bytes; }
};

// Tracks which partitions of the receiver are complete as partitions of the sender arrive. Both divide the same data,
// each in its own way.
class PartitionMap {
 public:
  PartitionMap(size_t sent, uint64_t sent_bytes, size_t received, uint64_t received_bytes);

  // No partition has arrived.
  void Restart();
  void Arrived(size_t sent);
  // Constant time. A partition without data is complete (the sender may have less data than the receiver).
  bool IsComplete(size_t received) const { return by_bytes_ ? missing_[received] == 0 : left_ == 0; }

 private:
  // The receiver's partitions that contain data of that partition of the sender: [first, last).
  struct Range {
    size_t first, last;
  };
  Range Of(size_t sent) const;

  const size_t sent_;
  const uint64_t sent_bytes_, received_bytes_;
  const bool alike_;     // both divide the data in the same way
  const bool by_bytes_;  // there is data; else all partitions are complete when all messages have arrived
  size_t left_ = 0;
  std::vector<uint32_t> missing_, all_missing_;  // by partition of the receiver: number of partitions of the sender
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PARTITION_MAP_H_
