#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/service.h"

// Fences, post-start-complete-wait, locks and flushes.
namespace weft::mpi::rma {
namespace {

// Up to so many others each rank tells all of them that it is done, right behind its data on the same connection: half a round
// trip. With more, everybody makes sure that its data arrived, and then all meet in a barrier.
constexpr int kDirectFence = 8;
// So many calls of MPI_Win_test that find nothing are between two looks whether the process that is waited for lives.
constexpr uint32_t kTestsBeforeDoubt = 4096;

Error WrongAssert(int assertion, const char* call) {
  return Error(MPI_ERR_ASSERT, "assert " + std::to_string(assertion) + " is not a combination of those that " + call + " allows");
}

inline Error CheckAssert(int assertion, int allowed, const char* call) {
  if ((assertion & ~allowed) == 0) [[likely]] return {};
  return WrongAssert(assertion, call);
}

// Whether the counter, which wraps, has come to `wanted`.
bool Reached(const std::atomic<uint32_t>& counter, uint32_t wanted) {
  return static_cast<int32_t>(counter.load(std::memory_order_acquire) - wanted) >= 0;
}

}  // namespace

struct RdmaWindow::Flushing {
  Peer* peer;
  uint32_t operations;  // of the peer that the mark is behind
  Link* link;
  Link::Mark mark;
};

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
  return Error(MPI_ERR_RMA_RANGE, "an operation of the epoch named memory that is not attached at its target");
}

// --- flushes ---

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

// --- fence ---

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
  uint8_t* room;
  WEFT_MPI_TRY(link->BeginMessage(&room));
  const size_t bytes = WriteFence(entry.number, {room, kSlotBytes - kHeaderBytes});
  return link->SendMessage(MessageKind::kFence, peer.window, bytes,
                           {.reply = entry.asks ? &reply : nullptr, .urgent = false, .behind_reads = true, .promises = entry.promises});
}

namespace {

void Note(Error error, Error* first) {
  if (!error.ok() && first->ok()) *first = std::move(error);
}

}  // namespace

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
  if (HostWait::Spin(passed)) return Outcome();
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

// Nobody else writes this counter: it goes on from what this process knows, and where it is something else the call fails.
void RdmaWindow::Signal(int rank, const Sign& sign) {
  const uint32_t count = ++(peers_[static_cast<size_t>(rank)].told.*sign.count);
  if ((host_.control(rank).signals[comm->rank].*sign.counter).exchange(count) != count - 1) [[unlikely]] NoteOverwritten("a counter of this rank", rank);
  host_.Wake(rank);
}

// --- post, start, complete, wait ---

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

// --- locks ---

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
  // Who holds it may die, and so may the target, whose service may hold it for somebody elsewhere.
  const auto awaited = [&] {
    if (const int holder = lock.Holder(me); holder >= 0 && host_.Ended(holder)) lock.Forget(holder);
    return rank;
  };
  target.held = HeldHere::kWaits;
  lock.StartWaiting(me, exclusive);
  bool has = false;
  while (!lost && overwritten_.empty() && !(has = acquired())) {
    WakeWaiting(lock);  // what was tried and given up may have been in somebody's way
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
