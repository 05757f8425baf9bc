#ifndef MPI_HYBRID_RMA_RANGE_CACHE_H_
#define MPI_HYBRID_RMA_RANGE_CACHE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "mpi_hybrid/rma/host_process.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::rma {

// Ranges of the host's segment that windows of this process had, mapped still, for its next windows of the same ranks. To give memory back and
// to map other memory costs the system calls, page faults and interrupts of other processors that a small window is made of.
//
// A range of the cache belongs to this process only as far as its own part is concerned: the other ranks may still use theirs. It has a new window
// when all of its ranks offer it to one another (host_range.cc).
//
// With the library's lock.
class RangeCache {
 public:
  // Ranges that can stand for one another: of the same ranks, with a part of the same length for this one.
  struct Key {
    std::vector<int> places;  // in the segment, by rank
    size_t own_bytes = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Range {
    uint64_t offset = 0;
    std::vector<size_t> starts;  // of the parts, by rank, and the end
    shm::Mapping mapping;
    std::vector<std::shared_ptr<HostProcess>> processes;  // whose memory it is: the next window need not find them again
  };
  using Ranges = std::vector<Range>;

  static constexpr size_t kMostOffered = 3;  // so that what a rank tells fits into a post of the collective (coll/host/memory.h)
  static constexpr size_t kMostOfPart = 256 * 1024;  // bytes: a range with a longer part is not for the cache
  static constexpr size_t kMostOfParts = 2 << 20;    // bytes of the parts of this process, altogether
  static constexpr size_t kMostRanges = 512;

  // Removes up to kMostOffered ranges, the last ones first.
  Ranges TakeOffers(const Key& key);
  // What has to leave the cache for it: the oldest ones, with their places.
  std::vector<std::pair<std::vector<int>, Range>> Add(const Key& key, Range range);
  bool HasRoom(size_t own_bytes) const { return ranges_ < kMostRanges && parts_ + own_bytes <= kMostOfParts; }
  void Clear();

  size_t ranges() const { return ranges_; }

 private:
  struct Aged {
    uint64_t age;  // less than that of any that came later
    Range range;
  };
  std::map<Key, std::vector<Aged>> by_key_;  // each with its oldest first; none is empty
  uint64_t next_age_ = 0;
  size_t ranges_ = 0, parts_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_RANGE_CACHE_H_
