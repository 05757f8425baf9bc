// What a sender of partitioned communication says of its partitions, and what a receiver that divides the data in any other way makes of it, next to a
// count of bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.h"
#include "mpi_hybrid/p2p/partition_map.h"

namespace weft::mpi {
namespace {

constexpr size_t kLength = PartitionAnnouncement::kLength;
constexpr uint64_t kMostReceived = 64, kMostModelled = 4096;

uint64_t Overlap(uint64_t from, uint64_t to, uint64_t other_from, uint64_t other_to) {
  const uint64_t first = std::max(from, other_from), last = std::min(to, other_to);
  return first < last ? last - first : 0;
}

// Bytes that each partition of the receiver lacks.
class Model {
 public:
  Model(const PartitionAnnouncement& sender, size_t received, uint64_t received_bytes)
      : sender_(sender), bytes_(received_bytes), missing_(received), left_(sender.partitions) {
    for (size_t r = 0; r < received; ++r) missing_[r] = Overlap(0, sender.total(), r * bytes_, (r + 1) * bytes_);
  }
  void Arrived(uint64_t sent) {
    --left_;
    for (size_t r = 0; r < missing_.size(); ++r)
      missing_[r] -= Overlap(sent * sender_.bytes, (sent + 1) * sender_.bytes, r * bytes_, (r + 1) * bytes_);
  }
  // Of a receiver whose partitions have bytes.
  bool IsComplete(size_t r) const { return sender_.bytes == 0 ? left_ == 0 : missing_[r] == 0; }

 private:
  const PartitionAnnouncement sender_;
  const uint64_t bytes_;
  std::vector<uint64_t> missing_;
  uint64_t left_;
};

void Receive(const PartitionAnnouncement& sender, std::span<const uint8_t> choices) {
  if (choices.size() < 3 || sender.partitions == 0 || sender.partitions > kMostModelled) return;
  const size_t received = 1 + choices[0] % kMostReceived;
  const uint64_t received_bytes = 1 + choices[1] + (uint64_t{choices[2]} << (choices[0] >> 6) * 8);
  if (received == sender.partitions && received_bytes == sender.bytes) return;  // by number: of no more bytes than there are
  PartitionMap map(sender.partitions, sender.bytes, received, received_bytes);
  for (int start = 0; start < 2; ++start) {
    Model model(sender, received, received_bytes);
    map.Restart();
    std::vector<uint32_t> order(sender.partitions);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[choices[i % choices.size()] * (i + 1) % order.size()]);
    for (const uint32_t sent : order) {
      map.Arrived(sent);
      model.Arrived(sent);
      for (size_t r = 0; r < received; ++r) WEFT_CHECK(map.IsComplete(r) == model.IsComplete(r));
    }
    for (size_t r = 0; r < received; ++r) WEFT_CHECK(map.IsComplete(r));
  }
}

}  // namespace
}  // namespace weft::mpi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::mpi;
  if (size < kLength) return 0;
  const auto sender = PartitionAnnouncement::Parse(std::span<const uint8_t, kLength>(data, kLength));
  if (!sender) return 0;
  uint8_t bytes[kLength];
  sender->SerializeTo(bytes);
  WEFT_CHECK(std::memcmp(bytes, data, kLength) == 0);
  WEFT_CHECK(sender->partitions == 0 || sender->total() / sender->partitions == sender->bytes);
  Receive(*sender, std::span(data + kLength, size - kLength));
  return 0;
}
