#ifndef MPI_HYBRID_RMA_RANGE_CACHE_H_
#define MPI_HYBRID_RMA_RANGE_CACHE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "mpi_hybrid/host/process.h"
#include "mpi_hybrid/host/segment.h"

namespace weft::mpi::rma {

// Ranges of the host's segment that earlier windows of this process used. They stay mapped for its next windows of the
// same ranks. Freeing memory and mapping other memory would cost most of the time of a small window: system calls, page
// faults, and interrupts of other processors.
//
// A range of the cache belongs to this process only with regard to its own part; the other ranks may still use theirs.
// A new window gets a range when all of its ranks offer it to one another (host_range.cc).
//
// Call with the library's lock held.
class RangeCache {
 public:
  // Ranges with equal keys are interchangeable: they have the same ranks and a part of the same length for this one.
  struct Key {
    std::vector<int> places;  // in the segment, by rank
    size_t own_bytes = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Range {
    uint64_t offset = 0;
    std::vector<size_t> starts;  // of the parts, by rank, and the end
    host::Mapping mapping;
    // the owners of the parts; the next window need not find them again
    std::vector<std::shared_ptr<host::Process>> processes;
  };
  using Ranges = std::vector<Range>;

  // so few that a rank's offers fit into a post of the collective (coll/host/memory.h)
  static constexpr size_t kMostOffered = 3;
  static constexpr size_t kMostOfPart = 256 * 1024;  // bytes: a range with a longer part is not cached
  static constexpr size_t kMostOfParts = 2 << 20;    // bytes of this process's parts in total
  static constexpr size_t kMostRanges = 512;

  // Removes up to kMostOffered ranges from the cache, the newest first.
  Ranges TakeOffers(const Key& key);
  // Adds a range. Returns the ranges that must leave the cache for it: the oldest ones, with their places.
  std::vector<std::pair<std::vector<int>, Range>> Add(const Key& key, Range range);
  bool HasRoom(size_t own_bytes) const { return ranges_ < kMostRanges && parts_ + own_bytes <= kMostOfParts; }
  void Clear();

  size_t ranges() const { return ranges_; }

 private:
  struct Aged {
    uint64_t age;  // smaller than that of every later range
    Range range;
  };
  std::map<Key, std::vector<Aged>> by_key_;  // the ranges of a key, the oldest first; no list is empty
  uint64_t next_age_ = 0;
  size_t ranges_ = 0, parts_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_RANGE_CACHE_H_
