#include <atomic>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/service.h"
#include "mpi_hybrid/rma/synchronization.h"

// MPI_Win_fence.
namespace weft::mpi::rma {
namespace {

// Up to so many others each rank tells all of them that it is done, right behind its data on the same connection: half a round
// trip. With more, everybody makes sure that its data arrived, and then all meet in a barrier.
constexpr int kDirectFence = 8;

}  // namespace

// As Tell, of a fence. `last`: no epoch follows, and no promise is made for it.
Error RdmaWindow::TellFence(int rank, bool last) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (host_.control(rank)) {
    Signal(rank, kFenced);
    return {};
  }
  Link* link = device_->Existing(peer.process);
  const bool gets = std::exchange(peer.got_early, false) && !last && link != nullptr && link->MayPromise(own_.id);
  const FenceNotice::Entry entry = device_->service().EnterFence(own_, rank, peer.used, gets);
  if (link != nullptr) link->SetPromised(own_.id, entry.promises);
  if (!entry.message) return {};
  WEFT_MPI_TRY(device_->Find(peer.process, &link));
  const Reply reply{.fenced = own_.id, .fence = entry.number};
  if (link->MayJoinFence(peer.window)) return link->JoinFence(entry.number, entry.promises, entry.asks ? &reply : nullptr);
  uint8_t* room;
  WEFT_MPI_TRY(link->BeginMessage(&room));
  const size_t bytes = WriteFence(entry.number, {room, kSlotBytes - kHeaderBytes});
  return link->SendMessage(MessageKind::kFence, peer.window, bytes,
                           {.reply = entry.asks ? &reply : nullptr, .urgent = false, .behind_reads = true, .promises = entry.promises});
}


// Until each of the others has told that it is in the fence, or `is_gone(rank)`.
template <typename IsGone>
Error RdmaWindow::AwaitFences(const IsGone& is_gone) {
  const int size = comm->size(), me = comm->rank;
  int missing = 0;  // ranks below were heard of
  // None is more than one fence ahead, but those whose fences fail, since a third rank died. In memory that others of this host write, a counter that
  // is further than that is no reason to go on (CheckCounter).
  const uint32_t most_ahead = neighbors_ ? 1 : INT32_MAX;
  const auto arrived = [&] {
    return missing == me || own_.control.signals[missing].fences.load(std::memory_order_acquire) - fences_ <= most_ahead;
  };
  const auto done = [&] {
    while (missing < size && arrived()) ++missing;
    return missing == size || is_gone(missing);
  };
  const auto look = [&] {
    CheckCounter(own_.control.signals[missing].fences, fences_, missing, "fences");
    return missing;
  };
  while (missing != size) {
    AwaitHost(done, look);
    if (!overwritten_.empty()) return OverwrittenError();
    if (missing != size && !arrived()) return GoneError(missing);
  }
  return {};
}

Error RdmaWindow::Fence(int assertion) {
  WEFT_MPI_TRY(
      CheckAssert(assertion, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, "MPI_Win_fence"));
  WEFT_MPI_TRY(epochs_.Fence((assertion & MPI_MODE_NOSUCCEED) != 0));
  const int size = comm->size(), me = comm->rank;
  if (all_here_ && size != 1) [[likely]] {
    if (takes_parcels_) return FenceWithParcels();
    return size - 1 > kDirectFence ? FenceTogether() : FenceHere();
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (size == 1) return Outcome();
  if (size - 1 > kDirectFence) {
    Error flushed = FlushUsed(true, -1);
    Error met = Barrier(*comm);
    WEFT_MPI_TRY(std::move(flushed));
    WEFT_MPI_TRY(std::move(met));
    return Outcome();
  }
  // The only target finds this epoch's operations done when it is told, since they went the same way. A third rank is told over a way of its own, and may
  // reach the target before they do: not before they are done.
  const bool last = (assertion & MPI_MODE_NOSUCCEED) != 0;
  Error told, flushed;
  int only = -1;
  if (size > 2 && !used_.empty()) {
    if (used_.size() == 1 && used_[0] != me) Note(TellFence(only = used_[0], last), &told);
    flushed = FlushUsed(true, -1);
  }
  for (int i = 1; i < size; ++i) {
    if (const int rank = (me + i) % size; rank != only) Note(TellFence(rank, last), &told);
  }
  ++fences_;
  WEFT_MPI_TRY(std::move(told));
  std::vector<Flushing> flushing;
  for (int used : used_) {
    WEFT_MPI_TRY(StartFlush(peers_[static_cast<size_t>(used)], flavor == MPI_WIN_FLAVOR_DYNAMIC, &flushing));
    peers_[static_cast<size_t>(used)].used = false;
  }
  used_.clear();
  WEFT_MPI_TRY(AwaitFences([&](int rank) { return Gone(peers_[static_cast<size_t>(rank)]); }));
  WEFT_MPI_TRY(AwaitFlushed(flushing));
  WEFT_MPI_TRY(std::move(flushed));
  return Outcome();
}

// A barrier. Where all are on this host the control blocks do: a first collective on the window's communicator would make memory for it.
Error RdmaWindow::Meet() {
  const int size = comm->size();
  if (!all_here_ || size == 1) return Barrier(*comm);
  return size - 1 > kDirectFence ? FenceTogether() : FenceHere();
}

// Where memory is all that lies between: what each has done is done, and is seen by who sees its signal.
Error RdmaWindow::FenceHere() {
  const int size = comm->size(), me = comm->rank;
  for (int i = 1; i < size; ++i) Signal(me + i < size ? me + i : me + i - size, kFenced);
  ++fences_;
  WEFT_MPI_TRY(AwaitFences([&](int rank) { return Gone(peers_[static_cast<size_t>(rank)]); }));
  return OperationOutcome();
}

// With many others on the same host: the last one that comes tells the rest.
Error RdmaWindow::FenceTogether() {
  const int size = comm->size(), me = comm->rank;
  ControlHead& meeting = *host_.control(0).head;
  // Nobody passes before this rank has come, and nobody comes to the next fence before all have passed. (Behind a fence with a dead rank both stay behind.)
  if (static_cast<int32_t>(meeting.passed.load() - fences_) > 0) [[unlikely]] NoteOverwritten("the counter of fences", 0);
  const uint32_t before = fences_++ * static_cast<uint32_t>(size);
  const auto arrived = static_cast<int32_t>(meeting.arrived.fetch_add(1) - before);
  if (arrived >= size) [[unlikely]] NoteOverwritten("the counter of ranks in a fence", 0);
  if (arrived == size - 1) {
    meeting.passed.store(fences_);
    for (int rank = 0; rank < size; ++rank) {
      if (rank != me) host_.Wake(rank);
    }
    return Outcome();
  }
  const auto passed = [&] { return Reached(meeting.passed, fences_); };
  if (WordWait::Spin(passed)) return Outcome();
  int looked_at = me, gone = -1;
  const auto done = [&] {
    if (passed()) return true;
    for (int rank = 0; rank < size && gone < 0; ++rank) {
      if (Gone(peers_[static_cast<size_t>(rank)])) gone = rank;
    }
    return gone >= 0;
  };
  // Nobody knows who has not come: one after the other is looked at. The launcher may know before. The two counters are nobody's own; so each says in its
  // line that it waits, and when all do, the counters are wrong.
  std::atomic<uint32_t>& mine = host_.control(0).signals[me].fences;
  mine.store(peers_[0].told.fences = fences_);
  const auto look = [&] {
    int waiting = 0;
    for (int rank = 0; rank < size; ++rank) waiting += host_.control(0).signals[rank].fences.load() == fences_;
    if (waiting == size && !passed()) overwritten_ = "the counter of ranks in a fence was overwritten: all of them wait";
    return looked_at = (looked_at + 1) % size;
  };
  SleepForHost(done, look);
  if (passed()) return Outcome();
  return overwritten_.empty() ? GoneError(gone) : OverwrittenError();
}

}  // namespace weft::mpi::rma
