#include <algorithm>
#include <vector>

#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/synchronization.h"

// Flushes.
namespace weft::mpi::rma {

Error RdmaWindow::StartFlush(Peer& peer, bool remote, std::vector<Flushing>* flushing) {
  if (peer.here) return {};
  Link* link = device_->Existing(peer.process);
  if (link == nullptr) return {};
  Flushing one{&peer, peer.operations, link, {}};
  WEFT_MPI_TRY(link->StartFlush(remote, &one.mark));
  flushing->push_back(one);
  return {};
}

Error RdmaWindow::AwaitFlushed(const std::vector<Flushing>& flushing) {
  if (flushing.empty()) return {};
  device_->Await([&] {
    for (const Flushing& one : flushing) {
      if (!one.link->Flushed(one.mark)) return false;
    }
    return true;
  });
  for (const Flushing& one : flushing) {
    if (one.link->broken()) return one.link->failure();
  }
  return {};
}

// Those used since the last flush; `rank` >= 0: only that one.
Error RdmaWindow::FlushUsed(bool remote, int rank) {
  if (used_.empty() && staged_.rank < 0) [[likely]]
    return Outcome();
  if (staged_.rank >= 0 && (rank < 0 || rank == staged_.rank)) WEFT_MPI_TRY(EnsureAccess(staged_.rank));
  std::vector<Flushing> flushing;
  for (int used : used_) {
    if (rank < 0 || used == rank) WEFT_MPI_TRY(StartFlush(peers_[static_cast<size_t>(used)], remote, &flushing));
  }
  WEFT_MPI_TRY(AwaitFlushed(flushing));
  if (!remote) return Outcome();
  // Another thread may have gone on meanwhile.
  for (const Flushing& one : flushing) {
    if (one.peer->operations == one.operations) one.peer->used = false;
  }
  std::erase_if(used_, [this](int used) { return !peers_[static_cast<size_t>(used)].used; });
  return Outcome();
}

Error RdmaWindow::Flush(int rank) {
  if (rank == MPI_PROC_NULL) return {};
  if (rank != kAllRanks && static_cast<size_t>(rank) >= peers_.size()) [[unlikely]]
    return CheckRank(rank);
  WEFT_MPI_TRY(epochs_.MayFlush(rank == kAllRanks ? -1 : rank));
  return FlushUsed(true, rank == kAllRanks ? -1 : rank);
}

Error RdmaWindow::FlushLocal(int rank) {
  if (rank == MPI_PROC_NULL) return {};
  if (rank != kAllRanks) WEFT_MPI_TRY(CheckRank(rank));
  WEFT_MPI_TRY(epochs_.MayFlush(rank == kAllRanks ? -1 : rank));
  return FlushUsed(false, rank == kAllRanks ? -1 : rank);
}

Error RdmaWindow::Sync() {
  Progress::Poll();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return {};
}

}  // namespace weft::mpi::rma
