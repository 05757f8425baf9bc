#ifndef MPI_HYBRID_RMA_HOST_RANGE_H_
#define MPI_HYBRID_RMA_HOST_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/rma/range_cache.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::rma {

// A range of the host's segment that all ranks of a communicator map at once, with a part for each, zero at first: one mapping for a process,
// whatever the number of ranks. Small ones are kept for the next window of the same ranks (range_cache.h). The memory of the others is given back when
// all of them that live are done with it.
class HostRange {
 public:
  HostRange() = default;
  ~HostRange();
  HostRange(const HostRange&) = delete;
  HostRange& operator=(const HostRange&) = delete;

  // Collective. `bytes` are for this rank; not `wants`: it can or may not. No error and no range, at any rank: not all want it, are in the
  // segment, or have room.
  Error Make(Comm& comm, bool wants, size_t bytes);

  explicit operator bool() const { return static_cast<bool>(range_.mapping); }
  uint8_t* of(int rank) const { return range_.mapping.data() + range_.starts[static_cast<size_t>(rank)]; }
  // Of its part, in whole pages.
  size_t bytes_of(int rank) const { return range_.starts[static_cast<size_t>(rank) + 1] - range_.starts[static_cast<size_t>(rank)]; }

  // The ranks ended their use of it together, so that the next window of theirs may have it. `processes` go with it.
  void MayBeReused(std::vector<std::shared_ptr<HostProcess>> processes);

  // MPI_Finalize. Unmaps what is kept.
  static void Close();

 private:
  struct Head;
  struct Card;

  bool TakeCommon(const std::vector<Card>& cards, RangeCache::Ranges offers, int rank);
  Error MakeNew(Comm& comm, std::vector<size_t> starts);
  static void GiveUp(const std::vector<int>& places, const RangeCache::Range& range);
  static void Keep(const RangeCache::Key& key, RangeCache::Range range);
  static RangeCache& Cache();

  RangeCache::Key key_;
  RangeCache::Range range_;
  bool may_be_reused_ = false;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_RANGE_H_
