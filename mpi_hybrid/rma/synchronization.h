#ifndef MPI_HYBRID_RMA_SYNCHRONIZATION_H_
#define MPI_HYBRID_RMA_SYNCHRONIZATION_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/rma/rdma_window.h"

// Shared by the files of RdmaWindow's synchronization calls (synchronization.cc, flush.cc, fence.cc, post_start.cc and
// lock_epoch.cc).
namespace weft::mpi::rma {

Error WrongAssert(int assertion, const char* call);
inline Error CheckAssert(int assertion, int allowed, const char* call) {
  if ((assertion & ~allowed) == 0) [[likely]] return {};
  return WrongAssert(assertion, call);
}

// Whether the counter, which wraps around, has reached `wanted`.
inline bool Reached(const std::atomic<uint32_t>& counter, uint32_t wanted) {
  return static_cast<int32_t>(counter.load(std::memory_order_acquire) - wanted) >= 0;
}

inline void Note(Error error, Error* first) {
  if (!error.ok() && first->ok()) *first = std::move(error);
}

// No other process writes this counter. It continues from the value that this process knows; if it has another value,
// the call fails.
inline void RdmaWindow::Signal(int rank, const Sign& sign) {
  const uint32_t count = ++(peers_[static_cast<size_t>(rank)].told.*sign.count);
  if ((host_.control(rank).signals[comm->rank].*sign.counter).exchange(count) != count - 1) [[unlikely]] NoteOverwritten("a counter of this rank", rank);
  host_.Wake(rank);
}

struct RdmaWindow::Flushing {
  Peer* peer;
  uint32_t operations;  // of the peer that the mark is behind
  Link* link;
  Link::Mark mark;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_SYNCHRONIZATION_H_
