#include "mpi_hybrid/rma/synchronization.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/rma/service.h"

// What fences, post and start, locks and flushes have in common.
namespace weft::mpi::rma {

Error WrongAssert(int assertion, const char* call) {
  return Error(MPI_ERR_ASSERT, "assert " + std::to_string(assertion) + " is not a combination of the assertions that " + call + " allows");
}

bool RdmaWindow::Gone(const Peer& peer) const {
  if (host_.known_ended(RankOf(peer)) || IsDead(peer.process)) return true;
  return device_ != nullptr && device_->dead(peer.process);
}

Error RdmaWindow::GoneError(int rank) const {
  return Error(ClassOfGone(peers_[static_cast<size_t>(rank)].process), "rank " + std::to_string(rank) + " of the window, which this call waits for, is gone");
}

Error RdmaWindow::Outcome() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return OperationOutcome();
}

Error RdmaWindow::TakeOperationError() {
  if (!overwritten_.empty()) return OverwrittenError();
  operation_failed_ = false;
  return Error(MPI_ERR_RMA_RANGE, "an operation of the epoch accessed memory that is not attached at its target");
}

// Who dies is an error of a call that tells him something; the others are told all the same, who wait for that.
Error RdmaWindow::Tell(int rank, const Sign& sign, bool behind_reads) {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (host_.control(rank)) {
    Signal(rank, sign);
    return {};
  }
  Link* link;
  WEFT_MPI_TRY(device_->Find(peer.process, &link));
  return link->SendPlain(sign.kind, peer.window, {.urgent = false, .behind_reads = behind_reads});
}

Error RdmaWindow::AwaitCounters(const std::vector<int>& ranks, std::atomic<uint32_t> Signals::*which, uint32_t Peer::*used,
                                const char* call) {
  size_t at = 0;
  const auto arrived = [&] {
    const int rank = ranks[at];
    return Reached(own_.control.signals[rank].*which, peers_[static_cast<size_t>(rank)].*used + 1);
  };
  const auto done = [&] {
    while (at < ranks.size() && arrived()) ++at;
    return at == ranks.size() || Gone(peers_[static_cast<size_t>(ranks[at])]);
  };
  const auto look = [&] {
    const int rank = ranks[at];
    CheckCounter(own_.control.signals[rank].*which, peers_[static_cast<size_t>(rank)].*used + 1, rank, call);
    return rank;
  };
  AwaitHost(done, look);
  if (!overwritten_.empty()) return OverwrittenError();
  if (at < ranks.size() && !arrived()) {
    return Error(ClassOfGone(peers_[static_cast<size_t>(ranks[at])].process), "rank " + std::to_string(ranks[at]) + ", whose " + call + " this call waits for, is gone");
  }
  for (int rank : ranks) ++(peers_[static_cast<size_t>(rank)].*used);
  return {};
}

// Whatever has to happen before the first operation on a target in this epoch.
Error RdmaWindow::EnsureAccess(int rank) {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!noted_locks_.empty() && !epochs_.in_start() && !peer.locked && NeedsLock(peer)) {
    TakeNoted(peer.noted.listed() ? peer.noted.thread : pthread_self(), &peer.noted);
  }
  return TakeAccess(rank);
}

bool RdmaWindow::NeedsLock(const Peer& peer) const {
  return peer.wanted != LockKind::kNone || (epochs_.in_lock_all() && !epochs_.lock_all_no_check());
}

Error RdmaWindow::TakeAccess(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const bool needs_post = epochs_.in_start() && !start_no_check_;
  bool Peer::*const ready = needs_post ? &Peer::post_seen : &Peer::locked;
  const auto is_open = [&] { return peer.*ready || (!needs_post && !NeedsLock(peer)); };
  if (is_open() && staged_.rank != rank) [[likely]]
    return {};
  if (peer.being_locked) Await([&] { return !peer.being_locked; });
  if (is_open() && staged_.rank != rank) return {};  // another thread has it, or ended the epoch
  noted_locks_.Remove(peer.noted);
  peer.being_locked = true;
  Error error;
  if (!is_open()) {
    error = needs_post ? AwaitCounters({rank}, &Signals::posts, &Peer::posts_used, "MPI_Win_post")
                       : AcquireLock(rank, peer.wanted == LockKind::kExclusive);
    peer.*ready = error.ok();
  }
  // The program was told that it is done. If there is no memory for it now, it goes before the next operation, or at the end of the epoch.
  if (error.ok() && staged_.rank == rank) error = SendStaged(peer);
  peer.being_locked = false;
  Progress::Wake();
  return error;
}

}  // namespace weft::mpi::rma
