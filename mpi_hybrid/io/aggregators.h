#ifndef MPI_HYBRID_IO_AGGREGATORS_H_
#define MPI_HYBRID_IO_AGGREGATORS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/rma/window.h"

namespace weft::mpi::io {

// The ranks of a file that read and write in collective buffering, and their buffers. The buffers of an aggregator are
// in a window shared with the ranks of its host, which copy their data directly into it. Ranks of other hosts send
// their data. Call with the library's lock held.
class Aggregators {
 public:
  static constexpr int kBuffers = 2;  // one is filled while the other is written

  // Collective. `wanted`: the number of aggregators; 0: one per host. They are spread over the hosts.
  Error Make(Comm& comm, int64_t wanted, int64_t buffer_bytes);
  // Collective. `broken`: not all ranks take part (see Break).
  Error Drop(bool broken);
  bool Suits(int64_t wanted, int64_t buffer_bytes) const { return wanted == wanted_ && buffer_bytes == buffer_bytes_; }

  int count() const { return static_cast<int>(ranks_.size()); }
  int rank(int index) const { return ranks_[static_cast<size_t>(index)]; }
  // The index of this process; -1: it is not an aggregator.
  int own_index() const { return own_index_; }
  int64_t buffer_bytes() const { return buffer_bytes_; }
  // One of the buffers of an aggregator, of buffer_bytes() bytes. Null: the aggregator is not on this host.
  uint8_t* Buffer(int index, int which) const {
    uint8_t* const memory = memory_[static_cast<size_t>(index)];
    return memory != nullptr ? memory + which * buffer_bytes_ : nullptr;
  }
  // Whether `rank` has access to this aggregator's buffers.
  bool Shares(int rank) const { return !shares_.empty() && shares_[static_cast<size_t>(rank)]; }

 private:
  Error MakeShared(Comm& host, const std::vector<int>& leaders, int own_leader);

  int64_t wanted_ = 0, buffer_bytes_ = 0;
  std::vector<int> ranks_;
  std::vector<uint8_t*> memory_;  // by aggregator
  std::vector<bool> shares_;       // by rank; empty: no rank has
  int own_index_ = -1;
  Ref<Window> window_;
  std::unique_ptr<uint8_t[]> alone_;  // this aggregator's buffers if there is no window
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_AGGREGATORS_H_
