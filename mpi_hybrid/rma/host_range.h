#ifndef MPI_HYBRID_RMA_HOST_RANGE_H_
#define MPI_HYBRID_RMA_HOST_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::rma {

// A range of the host's segment that all ranks of a communicator map at once, with a part for each, zero at first: one mapping for a process,
// whatever the number of ranks. Its memory is given back when all of them that live are done with it.
class HostRange {
 public:
  HostRange() = default;
  ~HostRange();
  HostRange(const HostRange&) = delete;
  HostRange& operator=(const HostRange&) = delete;

  // Collective. `bytes` are for this rank; not `wants`: it can or may not. No error and no range, at any rank: not all want it, are in the
  // segment, or have room.
  Error Make(Comm& comm, bool wants, size_t bytes);

  explicit operator bool() const { return static_cast<bool>(mapping_); }
  uint8_t* of(int rank) const { return mapping_.data() + starts_[static_cast<size_t>(rank)]; }
  // Of its part, in whole pages.
  size_t bytes_of(int rank) const { return starts_[static_cast<size_t>(rank) + 1] - starts_[static_cast<size_t>(rank)]; }

 private:
  struct Head;

  uint64_t offset_ = 0;
  std::vector<size_t> starts_;  // by rank, and the end
  std::vector<int> places_;     // in the segment, by rank
  shm::Mapping mapping_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_RANGE_H_
