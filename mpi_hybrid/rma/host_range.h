#ifndef MPI_HYBRID_RMA_HOST_RANGE_H_
#define MPI_HYBRID_RMA_HOST_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/host/segment.h"
#include "mpi_hybrid/rma/range_cache.h"

namespace weft::mpi::rma {

// A range of the host's segment that all ranks of a communicator map as a whole. It has a part for each rank and is
// zero at first. It takes one mapping per process for any number of ranks. Small ranges are kept for the next window of
// the same ranks (range_cache.h). The memory of other ranges is freed when all living ranks have finished with it.
class HostRange {
 public:
  HostRange() = default;
  ~HostRange();
  HostRange(const HostRange&) = delete;
  HostRange& operator=(const HostRange&) = delete;

  // Collective. `bytes`: size of this rank's part. `wants`: false if this rank cannot or must not use one. Success
  // without a range, at all ranks: not all ranks want it, are in the segment, or have space.
  Error Make(Comm& comm, bool wants, size_t bytes);

  explicit operator bool() const { return static_cast<bool>(range_.mapping); }
  uint8_t* of(int rank) const { return range_.mapping.data() + range_.starts[static_cast<size_t>(rank)]; }
  // The size of the rank's part, in bytes, a multiple of the page size.
  size_t bytes_of(int rank) const { return range_.starts[static_cast<size_t>(rank) + 1] - range_.starts[static_cast<size_t>(rank)]; }

  // The ranks have finished their use of it together, so that their next window may reuse it. `processes` are kept with
  // it.
  void MayBeReused(std::vector<std::shared_ptr<host::Process>> processes);

  // Called by MPI_Finalize. Unmaps the ranges that were kept.
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
