#include <string>
#include <utility>

#include "mpi_hybrid/rma/rdma_window.h"

// What another process of the user has written over, of what the ranks of this host share in a window.
namespace weft::mpi::rma {

void RdmaWindow::CheckCounter(const std::atomic<uint32_t>& counter, uint32_t wanted, int rank, const char* what) {
  const uint32_t found = counter.load();
  if (found - (wanted - 1) <= 2) return;  // it has come, or is one further by now
  overwritten_ = "the counter of " + std::string(what) + " of rank " + std::to_string(rank) + " went from " + std::to_string(wanted - 1) + " to " +
                 std::to_string(found) + ": another process wrote into the memory of the host's ranks";
}

void RdmaWindow::NoteOverwritten(const char* what, int rank) {
  overwritten_ = std::string(what) + " at rank " + std::to_string(rank) + " of the window was overwritten: another process wrote into the memory of the host's ranks";
  operation_failed_ = true;
}

// Where an operation or a wait is under way its thread has the library's lock, or says that it waits. The target's own service works on behalf of
// ranks elsewhere, without that lock: of one's own control block only what it leaves alone is looked at.
std::string RdmaWindow::Words::Overwritten() const {
  const int me = window_.comm->rank;
  for (int rank = 0; rank < window_.comm->size(); ++rank) {
    const ControlBlock& control = window_.host_.control(rank);
    if (!control) continue;
    const Peer& peer = window_.peers_[static_cast<size_t>(rank)];
    const Signals& signals = control.signals[me];
    const std::string where = " at rank " + std::to_string(rank) + " of a window";
    if (rank != me && (signals.fences.load() != peer.told.fences || signals.posts.load() != peer.told.posts || signals.completes.load() != peer.told.completes)) {
      return "a counter of this rank" + where;
    }
    if (signals.in_atomics.load() != 0) return "the word of this rank's atomic operations" + where;
    const uint32_t named = static_cast<uint32_t>(me) + 1;
    if (rank != me && rank != alone_at_ && control.head->accumulating.load() == named) return "the word of accumulates" + where;
    if (peer.held == HeldHere::kWaits) continue;
    const uint32_t writer = control.head->writer.load();
    const bool has_alone = (writer & ~ControlHead::kPromised) == named, shares = control.readers[me].load() != 0;
    if (has_alone != (peer.held == HeldHere::kExclusive) || shares != (peer.held == HeldHere::kShared)) return "the lock" + where;
  }
  return {};
}

bool RdmaWindow::Words::IsOverwritten(int target, bool alone) {
  alone_at_ = alone ? target : -1;
  std::string found = FindOverwritten();
  alone_at_ = -1;
  if (found.empty()) return false;
  window_.overwritten_ = std::move(found);
  return window_.operation_failed_ = true;
}

}  // namespace weft::mpi::rma
