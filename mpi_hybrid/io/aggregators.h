#ifndef MPI_HYBRID_IO_AGGREGATORS_H_
#define MPI_HYBRID_IO_AGGREGATORS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/rma/window.h"

namespace weft::mpi::io {

// The ranks of a file that do the reading and writing in collective buffering, and their buffers. An aggregator's buffers are in a window that the
// ranks of its host share, so that these put their data where it belongs; those elsewhere send it. With the library's lock.
class Aggregators {
 public:
  static constexpr int kBuffers = 2;  // one is filled while the other is written

  // Collective. `wanted`: how many; 0: one a host. Spread over the hosts.
  Error Make(Comm& comm, int64_t wanted, int64_t buffer_bytes);
  // Collective; `broken`: not all are here (Break).
  Error Drop(bool broken);
  bool Suits(int64_t wanted, int64_t buffer_bytes) const { return wanted == wanted_ && buffer_bytes == buffer_bytes_; }

  int count() const { return static_cast<int>(ranks_.size()); }
  int rank(int index) const { return ranks_[static_cast<size_t>(index)]; }
  // Of this process; -1: it is none.
  int own_index() const { return own_index_; }
  int64_t buffer_bytes() const { return buffer_bytes_; }
  // A buffer of that aggregator, of buffer_bytes(); null where it is not on this host.
  uint8_t* Buffer(int index, int which) const {
    uint8_t* const memory = memory_[static_cast<size_t>(index)];
    return memory != nullptr ? memory + which * buffer_bytes_ : nullptr;
  }
  // Whether that rank sees this aggregator's buffers.
  bool Shares(int rank) const { return !shares_.empty() && shares_[static_cast<size_t>(rank)]; }

 private:
  Error MakeShared(Comm& host, const std::vector<int>& leaders, int own_leader);

  int64_t wanted_ = 0, buffer_bytes_ = 0;
  std::vector<int> ranks_;
  std::vector<uint8_t*> memory_;  // by aggregator
  std::vector<bool> shares_;       // by rank; empty: nobody does
  int own_index_ = -1;
  Ref<Window> window_;
  std::unique_ptr<uint8_t[]> alone_;  // this aggregator's where there is no window
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_AGGREGATORS_H_
