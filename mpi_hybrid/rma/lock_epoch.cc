#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/service.h"
#include "mpi_hybrid/rma/synchronization.h"

// Epochs of locks.
namespace weft::mpi::rma {

void RdmaWindow::TakeNoted(pthread_t thread, const NotedLock* until) {
  const bool to_the_last = !until->listed();
  while (to_the_last || until->listed()) {
    NotedLock* const first = noted_locks_.FirstOf(thread);
    if (first == nullptr || first == until) return;
    noted_locks_.Remove(*first);
    const Ref<RdmaWindow> window(first->window);
    Note(window->TakeAccess(first->rank), &window->peers_[static_cast<size_t>(first->rank)].late);
  }
}

void RdmaWindow::WakeWaiting(const WindowLock& lock) {
  lock.ForEachWaiting([this](int rank) { host_.Wake(rank); });
}

Error RdmaWindow::AcquireHere(int rank, bool exclusive) {
  const WindowLock lock(host_.control(rank));
  const int me = comm->rank;
  const bool overtakes = epochs_.in_lock_all();
  Peer& target = peers_[static_cast<size_t>(rank)];
  const HeldHere to_hold = exclusive ? HeldHere::kExclusive : HeldHere::kShared;
  const auto acquired = [&] { return exclusive ? lock.TryExclusive(me, /*stay=*/true) : lock.TryShared(me, overtakes); };
  if (acquired()) [[likely]] {
    target.held = to_hold;
    return {};
  }
  bool lost = false;
  const auto done = [&] { return (exclusive ? lock.MayTakeExclusive(me) : lock.MayShare(overtakes)) || (lost = Gone(target)); };
  // Who holds it may die, and so may the target, whose service may hold it for a rank of another host.
  const auto awaited = [&] {
    if (const int holder = lock.Holder(me); holder >= 0 && host_.Ended(holder)) lock.Forget(holder);
    return rank;
  };
  target.held = HeldHere::kWaits;
  lock.StartWaiting(me, exclusive);
  bool has = false;
  while (!lost && overwritten_.empty() && !(has = acquired())) {
    WakeWaiting(lock);  // what was tried and given up may have kept other ranks waiting
    AwaitHost(done, awaited);
  }
  lock.StopWaiting(me);
  if (has) target.held = to_hold;
  if (has) return {};
  ReleaseHere(rank);
  return lost ? GoneError(rank) : OverwrittenError();
}

void RdmaWindow::ReleaseHere(int rank) {
  const WindowLock lock(host_.control(rank));
  HeldHere& held = peers_[static_cast<size_t>(rank)].held;
  if (!lock.Release(comm->rank) && held != HeldHere::kWaits) [[unlikely]] NoteOverwritten("the lock that this rank has", rank);
  held = HeldHere::kNothing;
  WakeWaiting(lock);
  if (rank == comm->rank && device_ != nullptr) device_->service().LockGivenBack();
}

Error RdmaWindow::AcquireLock(int rank, bool exclusive) {
  if (host_.control(rank)) return AcquireHere(rank, exclusive);
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  Link* link;
  WEFT_MPI_TRY(device_->Find(peer.process, &link));
  ReplyWaiter waiter;
  const Reply reply{.waiter = &waiter};
  const MessageKind kind = exclusive ? MessageKind::kLockExclusive
                           : epochs_.in_lock_all() ? MessageKind::kLockOvertaking
                                                   : MessageKind::kLockShared;
  WEFT_MPI_TRY(link->SendPlain(kind, peer.window, {.reply = &reply}));
  device_->Await([&] { return waiter.done; });
  return waiter.failed ? link->failure() : Error();
}

Error RdmaWindow::Lock(int lock_type, int rank, int assertion) {
  if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED) {
    return Error(MPI_ERR_LOCKTYPE,
                 "lock type " + std::to_string(lock_type) + " is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED");
  }
  WEFT_MPI_TRY(CheckAssert(assertion, MPI_MODE_NOCHECK, "MPI_Win_lock"));
  if (rank == MPI_PROC_NULL) return {};
  WEFT_MPI_TRY(CheckRank(rank));
  const bool no_check = (assertion & MPI_MODE_NOCHECK) != 0;
  WEFT_MPI_TRY(epochs_.Lock(rank, no_check));
  if (no_check) return {};
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const bool exclusive = lock_type == MPI_LOCK_EXCLUSIVE;
  if (!peer.here) {  // asked for with the first operation, or later
    peer.wanted = exclusive ? LockKind::kExclusive : LockKind::kShared;
    peer.noted.window = this;
    peer.noted.rank = rank;
    peer.noted.thread = pthread_self();
    noted_locks_.Add(peer.noted);
    return {};
  }
  if (!noted_locks_.empty()) [[unlikely]] TakeNoted(pthread_self(), &peer.noted);
  Error error = AcquireLock(rank, exclusive);
  if (!error.ok()) (void)epochs_.Unlock(rank);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return error;
}

Error RdmaWindow::SendStaged(Peer& peer) {
  Link* link;
  WEFT_MPI_TRY(device_->Find(peer.process, &link));
  uint8_t* room;
  WEFT_MPI_TRY(link->BeginMessage(&room));
  std::memcpy(room, staged_.body.get(), staged_.bytes);
  WEFT_MPI_TRY(link->SendMessage(staged_.kind, peer.window, staged_.bytes, {.reply = staged_.wants_reply ? &staged_.reply : nullptr}));
  staged_.rank = -1;
  return {};
}

Error RdmaWindow::SendEpoch(Peer& peer, bool* done) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Link* link;
  WEFT_MPI_TRY(device_->Find(peer.process, &link));
  uint8_t* room;
  WEFT_MPI_TRY(link->BeginMessage(&room));
  std::memcpy(room, staged_.body.get(), staged_.bytes);
  ReplyWaiter waiter;
  Reply reply = staged_.reply;
  reply.waiter = &waiter;
  peer.being_locked = true;
  Error error = link->SendMessage(staged_.kind, peer.window, staged_.bytes, {.reply = &reply, .epoch = peer.wanted});
  if (error.ok()) device_->Await([&] { return waiter.done; });
  peer.being_locked = false;
  Progress::Wake();
  if (!error.ok() || waiter.failed) return error.ok() ? link->failure() : std::move(error);
  *done = waiter.status != ReplyStatus::kBusy;
  if (!*done) return {};
  staged_.rank = -1;
  peer.used = false;
  std::erase_if(used_, [this](int rank) { return !peers_[static_cast<size_t>(rank)].used; });
  return {};
}

// Completes what was done at `ranks` and gives their locks back. Those of which the target could not be told, with an error, stay Peer::locked: the
// epoch goes on, and the program may end it again.
Error RdmaWindow::Unlocked(const std::vector<int>& ranks) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::deque<ReplyWaiter> waiters;  // in use until all are done, whatever goes wrong meanwhile
  std::vector<Flushing> flushing;
  Error first;
  for (int rank : ranks) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.locked = false;
    if (host_.control(rank)) {
      ReleaseHere(rank);
      continue;
    }
    bool told = false;
    Error error = StartUnlock(peer, &waiters, &flushing, &told);
    peer.locked = !told && !Gone(peer);
    if (told) peer.used = false;
    if (first.ok()) first = std::move(error);
  }
  if (waiters.empty() && first.ok()) return Outcome();
  std::erase_if(used_, [this](int rank) { return !peers_[static_cast<size_t>(rank)].used; });
  device_->Await([&] {
    for (const ReplyWaiter& waiter : waiters) {
      if (!waiter.done) return false;
    }
    return true;
  });
  WEFT_MPI_TRY(std::move(first));
  WEFT_MPI_TRY(AwaitFlushed(flushing));
  return Outcome();
}

// `told` false: for want of memory the target was not told, which answers nothing then.
Error RdmaWindow::StartUnlock(Peer& peer, std::deque<ReplyWaiter>* waiters, std::vector<Flushing>* flushing, bool* told) {
  Link* link;
  WEFT_MPI_TRY(device_->Find(peer.process, &link));
  uint8_t* room;
  WEFT_MPI_TRY(link->BeginMessage(&room));
  const Reply reply{.waiter = &waiters->emplace_back()};
  if (Error error = link->SendMessage(MessageKind::kUnlock, peer.window, 0, {.reply = &reply, .behind_reads = true}); !error.ok()) {
    waiters->pop_back();
    return error;
  }
  *told = true;
  flushing->push_back({&peer, peer.operations, link, {}});
  return link->StartFlush(true, &flushing->back().mark);  // the reply is proof enough
}

// Its operation is still here, for want of memory, and its target can be reached.
bool RdmaWindow::MayYetSend(const Peer& peer) const {
  if (staged_.rank != RankOf(peer)) return false;
  const Link* const link = device_->Existing(peer.process);
  return link != nullptr && !link->broken();
}

Error RdmaWindow::Unlock(int rank) {
  if (rank == MPI_PROC_NULL) return {};
  WEFT_MPI_TRY(CheckRank(rank));
  const bool held = epochs_.lock_of(rank) == EpochState::LockState::kLocked;
  WEFT_MPI_TRY(epochs_.Unlock(rank));
  if (!held) return FlushUsed(true, rank);
  Peer& peer = peers_[static_cast<size_t>(rank)];
  Error error;
  bool done = false;
  if (!peer.here && !peer.locked) {
    if (staged_.rank == rank && !peer.being_locked) error = SendEpoch(peer, &done);
    if (error.ok() && !done) error = EnsureAccess(rank);
  }
  if (error.ok()) error = done ? Outcome() : Unlocked({rank});
  Note(std::move(peer.late), &error);
  peer.late = {};
  if (!error.ok() && (peer.locked || MayYetSend(peer))) {
    (void)epochs_.Lock(rank, /*no_check=*/false);
    return error;
  }
  if (staged_.rank == rank) staged_.rank = -1;
  noted_locks_.Remove(peer.noted);
  peer.wanted = LockKind::kNone;
  peer.locked = false;
  return error;
}

Error RdmaWindow::LockAll(int assertion) {
  WEFT_MPI_TRY(CheckAssert(assertion, MPI_MODE_NOCHECK, "MPI_Win_lock_all"));
  const bool no_check = (assertion & MPI_MODE_NOCHECK) != 0;
  WEFT_MPI_TRY(epochs_.LockAll(no_check));
  if (no_check) return {};
  // The rest are locked when they are first used; memory that the program reaches by itself is locked now.
  for (int rank = 0; rank < comm->size(); ++rank) {
    if (rank == comm->rank || flavor == MPI_WIN_FLAVOR_SHARED) WEFT_MPI_TRY(EnsureAccess(rank));
  }
  return {};
}

Error RdmaWindow::UnlockAll() {
  WEFT_MPI_TRY(epochs_.UnlockAll());
  std::vector<int> locked;
  for (int rank = 0; rank < comm->size(); ++rank) {
    if (peers_[static_cast<size_t>(rank)].locked) locked.push_back(rank);
  }
  Error error = Unlocked(locked);
  const auto still = [this](int rank) { return peers_[static_cast<size_t>(rank)].locked; };
  if (!error.ok() && std::any_of(locked.begin(), locked.end(), still)) (void)epochs_.LockAll(/*no_check=*/false);
  Error flushed = FlushUsed(true, -1);
  return error.ok() ? std::move(flushed) : std::move(error);
}

}  // namespace weft::mpi::rma
