#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/synchronization.h"

// MPI_Win_post, start, complete, wait and test.
namespace weft::mpi::rma {
namespace {

// So many calls of MPI_Win_test that find nothing are between two looks whether the process that is waited for lives.
constexpr uint32_t kTestsBeforeDoubt = 4096;

}  // namespace

Error RdmaWindow::RanksOf(const Group& group, std::vector<int>* ranks) const {
  for (ProcessId process : group.members) {
    const int rank = comm->local->RankOf(process);
    if (rank == MPI_UNDEFINED) {
      return Error(MPI_ERR_GROUP, "process " + std::to_string(process) + " of the group is not in the window's group");
    }
    ranks->push_back(rank);
  }
  return {};
}

Error RdmaWindow::Post(const Ref<Group>& group, int assertion) {
  WEFT_MPI_TRY(CheckAssert(assertion, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT, "MPI_Win_post"));
  std::vector<int> origins;
  WEFT_MPI_TRY(RanksOf(*group, &origins));
  WEFT_MPI_TRY(epochs_.Post(origins));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (assertion & MPI_MODE_NOCHECK) return {};
  Error told;
  for (int rank : origins) Note(Tell(rank, kPosted, /*behind_reads=*/false), &told);
  return told;
}

Error RdmaWindow::Start(const Ref<Group>& group, int assertion) {
  WEFT_MPI_TRY(CheckAssert(assertion, MPI_MODE_NOCHECK, "MPI_Win_start"));
  std::vector<int> targets;
  WEFT_MPI_TRY(RanksOf(*group, &targets));
  WEFT_MPI_TRY(epochs_.Start(std::move(targets)));  // a call that is misplaced leaves the open epoch as it is
  for (int rank : epochs_.targets()) peers_[static_cast<size_t>(rank)].post_seen = false;
  start_no_check_ = (assertion & MPI_MODE_NOCHECK) != 0;
  return {};  // each target's post is waited for when it is first needed
}

Error RdmaWindow::Complete() {
  if (!epochs_.in_start()) return epochs_.Complete();
  const std::vector<int> targets = epochs_.targets();
  Error told;
  for (int rank : targets) Note(EnsureAccess(rank), &told);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::vector<Flushing> flushing;
  for (int rank : targets) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!deferred_.empty()) Note(HandOver(rank, Signals::ParcelOfStart(peer.told.completes + 1)), &told);
    Error completed = Tell(rank, kCompleted, /*behind_reads=*/true);
    if (completed.ok() && peer.used && !host_.control(rank)) completed = StartFlush(peer, flavor == MPI_WIN_FLAVOR_DYNAMIC, &flushing);
    Note(std::move(completed), &told);
    peer.used = false;
  }
  deferred_.clear();
  std::erase_if(used_, [this](int rank) { return !peers_[static_cast<size_t>(rank)].used; });
  WEFT_MPI_TRY(epochs_.Complete());
  WEFT_MPI_TRY(std::move(told));
  WEFT_MPI_TRY(AwaitFlushed(flushing));
  return Outcome();
}

Error RdmaWindow::Wait() {
  WEFT_MPI_TRY(epochs_.MayTest());
  WEFT_MPI_TRY(AwaitCounters(epochs_.origins(), &Signals::completes, &Peer::completes_used, "MPI_Win_complete"));
  Error taken;
  for (size_t i = 0; takes_parcels_ && i < epochs_.origins().size(); ++i) {
    const int rank = epochs_.origins()[i];
    Note(TakeParcel(rank, Signals::ParcelOfStart(peers_[static_cast<size_t>(rank)].completes_used)), &taken);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  WEFT_MPI_TRY(epochs_.Wait());
  return taken;
}

Error RdmaWindow::Test(bool* done) {
  WEFT_MPI_TRY(epochs_.MayTest());
  if (device_ != nullptr) ++device_->expected;  // so that this one round looks
  Progress::Poll();
  if (device_ != nullptr) --device_->expected;
  *done = false;
  for (int rank : epochs_.origins()) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (Reached(own_.control.signals[rank].completes, peer.completes_used + 1)) continue;
    if (++tests_ % kTestsBeforeDoubt == 0) (void)host_.Ended(rank);
    return Gone(peer) ? GoneError(rank) : Error();
  }
  *done = true;
  return Wait();
}

}  // namespace weft::mpi::rma
