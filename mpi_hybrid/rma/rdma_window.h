#ifndef MPI_HYBRID_RMA_RDMA_WINDOW_H_
#define MPI_HYBRID_RMA_RDMA_WINDOW_H_

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "mpi_hybrid/rma/blocks.h"
#include "mpi_hybrid/rma/device.h"
#include "mpi_hybrid/rma/epoch.h"
#include "mpi_hybrid/rma/host_memory.h"
#include "mpi_hybrid/rma/host_range.h"
#include "mpi_hybrid/rma/host_ranks.h"
#include "mpi_hybrid/rma/host_wait.h"
#include "mpi_hybrid/rma/link.h"
#include "mpi_hybrid/rma/noted_locks.h"
#include "mpi_hybrid/rma/parcel.h"
#include "mpi_hybrid/rma/process_memory.h"
#include "mpi_hybrid/rma/shared_segment.h"
#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/window.h"
#include "mpi_hybrid/shm/own_words.h"

namespace weft::mpi::rma {

// A window over shared memory and an RDMA device, each target by one of the two. Targets on this host are reached by
// themselves: their memory is mapped here, or the kernel copies from and to it, and their control block (control_block.h)
// is all that synchronisation needs. For the others Put and Get are RDMA Writes and Reads where memory is in large enough
// pieces; the rest are messages that the target's service applies (wire.h). Where a rank of the window has nobody
// elsewhere, and nobody has, there is no device.
class RdmaWindow final : public Window {
 public:
  explicit RdmaWindow(Ref<Comm> over);
  ~RdmaWindow() override;

  // The steps of construction. First what is this process's: memory, if the window brings it, and the control block. What is
  // collective is so over `parent`, the program's communicator, and for all, also those who have `failed`; it returns that
  // then, or another's failure.
  Error ShareRange(Comm& parent, MPI_Aint bytes, Error failed);  // collective: memory in the host's segment, if all are in that
  Error Allocate(MPI_Aint bytes);
  Error ShareMemory(Comm& parent, MPI_Aint bytes, bool contiguous, Error failed);  // collective
  void MakeControl();
  // Collective: finds out who is on this host (meet_host.cc).
  Error MeetHost(Comm& parent, Error failed);
  Error Reach();  // opens the device and registers `base` and `size` for others, where not all are here
  Error Publish(Comm& parent, const Error& failed);  // collective

  Error Put(const Origin& origin, const Target& target, Request** request) override;
  Error Get(const Origin& origin, const Target& target, Request** request) override;
  Error Accumulate(const Origin& origin, const Target& target, const Op& op, Request** request) override;
  Error GetAccumulate(const Origin& origin, const Origin& result, const Target& target, const Op& op, Request** request) override;
  Error FetchAndOp(const void* origin, void* result, const Datatype& type, const Target& target, const Op& op) override;
  Error CompareAndSwap(const void* origin, const void* compare, void* result, const Datatype& type,
                       const Target& target) override;

  Error Fence(int assertion) override;
  Error Start(const Ref<Group>& group, int assertion) override;
  Error Complete() override;
  Error Post(const Ref<Group>& group, int assertion) override;
  Error Wait() override;
  Error Test(bool* done) override;
  Error Lock(int lock_type, int rank, int assertion) override;
  Error Unlock(int rank) override;
  Error LockAll(int assertion) override;
  Error UnlockAll() override;
  Error Flush(int rank) override;
  Error FlushLocal(int rank) override;
  Error Sync() override;

  Error Attach(void* memory, MPI_Aint bytes) override;
  Error Detach(const void* memory) override;
  Error SharedQuery(int rank, MPI_Aint* bytes, int* unit, void** memory) override;
  Error MayFree() const override { return epochs_.MayFree(); }
  Error Free() override;

 private:
  enum class HeldHere : uint8_t { kNothing, kWaits, kShared, kExclusive };
  // What is known of a rank.
  struct Peer {
    ProcessId process = 0;
    uint64_t base = 0, size = 0;
    int unit = 1;
    uint32_t key = 0;
    uint32_t window = 0;
    // Reached without a link: mapped at `local` (dynamic windows: null, offsets are addresses), or copied by the kernel.
    bool here = false;
    uint8_t* local = nullptr;
    std::unique_ptr<ProcessMemory> private_memory;
    // Memory of MPI_Alloc_mem, which others may map, this one at its first operation: where; null from then on.
    bool of_host = false;
    std::unique_ptr<HostMemory::Span> to_map;
    uint64_t offset_in_span = 0;
    std::shared_ptr<MappedSpan> mapped;
    std::unique_ptr<Parcel> parcel;  // what private_memory's process is to do itself; null: never any
    AccumulateGuard guard;     // of what is `here`
    bool got_early = false;    // a message of this fence epoch is behind the answer of a Get: the next may promise to ask (fence_notice.h)
    bool used = false;         // in used_: operations since the last flush
    uint32_t operations = 0;   // so far, modulo 2^32
    bool being_locked = false;  // a thread waits for the lock of the epoch, or for the post of MPI_Win_start's
    LockKind wanted = LockKind::kNone;  // of MPI_Win_lock's epoch
    bool locked = false;        // really; until then nothing was sent
    NotedLock noted;            // listed from MPI_Win_lock until it is taken
    Error late;                 // of that, when another lock was taken behind it: MPI_Win_unlock returns it
    bool post_seen = false;    // of the epoch of MPI_Win_start
    uint32_t posts_used = 0, completes_used = 0;
    SignalCounts told;  // what this process said in its control block
    HeldHere held = HeldHere::kNothing;  // of the lock in its control block
  };
  // One communication call that passed the checks.
  struct Access {
    Peer* peer = nullptr;
    uint64_t offset = 0;   // of the target's origin, from the window's base
    MPI_Aint bytes = 0;    // of data
    Link* link = nullptr;  // null: `peer->here`
    RmaRequest* request = nullptr;
    bool staged = false;   // stays here until more is known of the epoch
    bool waits = false;    // its message may wait for company
  };
  // The first operation of an epoch of MPI_Win_lock, if it is one small message: when the epoch ends with it, lock, operation and unlock
  // are one message. It stays here until it is sent or the epoch has ended.
  struct Staged {
    int rank = -1;  // -1: none
    MessageKind kind = MessageKind::kPut;
    size_t bytes = 0;
    Reply reply;
    bool wants_reply = false;
    std::unique_ptr<uint8_t[]> body;
  };
  struct Flushing;
  // What this process wrote in control blocks.
  class Words final : public shm::OwnWords, public TurnWatch {
   public:
    explicit Words(RdmaWindow& window) : window_(window) {}

   private:
    std::string Overwritten() const override;
    bool IsOverwritten(int target, bool alone) override;

    RdmaWindow& window_;
    int alone_at_ = -1;  // during IsOverwritten
  };

  Error CheckRank(int rank) const;
  Error BeginAccess(const Target& target, MPI_Aint origin_bytes, bool with_request, Access* access);
  Error CheckRange(const Target& target, const Peer& peer, uint64_t* offset) const;
  bool InsideAtOnce(const Target& target, const Peer& peer, MPI_Aint bytes, uint64_t* offset) const;
  // Nothing has to be waited for, or sent, before an operation.
  bool AccessIsOpen(const Peer& peer) const {
    if (epochs_.in_start()) return peer.post_seen || start_no_check_;
    return peer.locked || (peer.wanted == LockKind::kNone && !epochs_.in_lock_all());
  }
  Error EnsureAccess(int rank);
  Error TakeAccess(int rank);
  bool NeedsLock(const Peer& peer) const;
  bool Stage(const Target& target, const Access& access, bool with_request);
  Error BeginData(const Access& access, uint8_t** room);
  // `more`: another message of the operation follows.
  Error SendData(const Access& access, MessageKind kind, size_t bytes, const Reply* reply, bool more);
  Error SendStaged(Peer& peer);
  bool MayYetSend(const Peer& peer) const;
  // Lock, operation and unlock at once. `done` false: the lock is not free.
  Error SendEpoch(Peer& peer, bool* done);
  bool LocalMemoryAttached(const Access& access, const Target& target);
  // Operations on one target take effect in the order of the calls, also where some are messages and some RDMA (the standard asks for less;
  // ARMCI and what stands on it do not). An RDMA operation behind a message that may not have been applied becomes a message (`rdma` false) or
  // waits.
  Error KeepOrder(const Access& access, bool* rdma);
  // Makes and gives out the request around `body`, which adds parts.
  template <typename Body>
  Error WithRequest(Access& access, Request** request, Body body);
  void FinishedRequest(Request** request);

  Error PutRdma(const Access& access, const Origin& origin, const Target& target, uint32_t key);
  Error PutThroughBounce(const Access& access, const Origin& origin, const Target& target, uint32_t key);
  Error PutMessages(const Access& access, const Origin& origin, const Target& target);
  Error GetRdma(const Access& access, const Origin& origin, const Target& target, uint32_t key);
  Error GetByWrite(const Access& access, const Origin& origin, bool* done);
  Error GetThroughBounce(const Access& access, const Origin& origin, const Target& target, uint32_t key);
  Error GetMessages(const Access& access, const Origin& origin, const Target& target);
  Error WaitForBounce(Link& link, BufferPool::Buffer* buffer);
  Registration* RegisterOrigin(const Origin& origin, MPI_Aint bytes, bool sink);
  // For dynamic windows, by asking. False: use messages.
  Error FindKey(const Access& access, const Target& target, uint32_t* key, bool* found);
  Reply* ReplyFor(const Access& access, bool wanted, Reply* storage);

  // `type` stays as it was when there is no element.
  Error CheckElements(const Origin& origin, const Target& target, const Op& op, ElementType* type) const;
  Error AccumulateMessages(const Access& access, const Origin& origin, const Origin* result, const Target& target, const Op& op,
                           const ElementType& type);
  Error PutHere(const Access& access, const Origin& origin, const Target& target);
  Error GetHere(const Access& access, const Origin& origin, const Target& target);
  // Whether the kernel has to copy its memory. What can be mapped is so from the first time on.
  bool IsCopied(Peer& peer) {
    if (peer.to_map != nullptr) [[unlikely]] MapMemory(peer);
    return peer.private_memory != nullptr;
  }
  void MapMemory(Peer& peer);
  void MapMemory(Peer& peer, pid_t pid);
  // Of memory that the kernel copies (copied.cc).
  Error PutCopied(const Access& access, const Origin& origin, const Target& target);
  Error GetCopied(const Access& access, const Origin& origin, const Target& target);
  Error CopyPieces(Direction direction, const Access& access, const Origin& origin, const Target& target);
  bool GetSpan(const Access& access, const Origin& origin, const Target& target);
  // ... which the target may be left to do (helped.cc). `op` null: a Put.
  static bool HasSmallPieces(const Target& target, MPI_Aint bytes);
  bool MayDefer(Peer& peer, const Target& target, MPI_Aint bytes);
  Error Defer(const Access& access, const Origin& origin, const Target& target, const Op* op, const ElementType& type);
  Error BeforeCopy(Peer& peer);
  Error CarryOutParcel(Peer& peer);
  Error CarryOut(Peer& peer, ByteSpan message);
  Error HandOver(int rank, uint64_t epoch);
  Error HandOverAll();
  Error TakeParcel(int rank, uint64_t epoch);
  Error LeaveFence();
  // Of a copy that the kernel did not make.
  Error CopyError(const Peer& peer, int error);
  Error AccumulateHere(const Access& access, const Origin& origin, const Origin* result, const Target& target, const Op& op,
                       const ElementType& type);

  // A counter of Signals, what it is by this process's own count, and the message that raises it elsewhere.
  struct Sign {
    std::atomic<uint32_t> Signals::*counter;
    uint32_t SignalCounts::*count;
    MessageKind kind;
  };
  static constexpr Sign kFenced{&Signals::fences, &SignalCounts::fences, MessageKind::kFence};
  static constexpr Sign kPosted{&Signals::posts, &SignalCounts::posts, MessageKind::kPost};
  static constexpr Sign kCompleted{&Signals::completes, &SignalCounts::completes, MessageKind::kComplete};

  // What a rank of this host does in the control block of `rank`.
  void Signal(int rank, const Sign& sign);
  Error AcquireHere(int rank, bool exclusive);
  void ReleaseHere(int rank);
  void WakeWaiting(const WindowLock& lock);
  template <typename IsGone>
  Error AwaitFences(const IsGone& is_gone);
  Error Meet();  // collective
  Error FenceHere();
  Error FenceTogether();
  Error FenceWithParcels();
  Error Tell(int rank, const Sign& sign, bool behind_reads);
  Error TellFence(int rank, bool last);
  void LeaveService();

  // As Device::Await, without a device too.
  template <typename Done>
  void Await(const Done& done) {
    if (device_ != nullptr) return device_->Await(done);
    Progress::WaitUntil(done);
  }
  // Until `done()`, which may be for a process of this host to bring about: that has no connection to break when it dies, so
  // that `awaited()`, a rank or -1, is looked at now and then. Gone() knows from then on. What a message brings about is there
  // only when this thread has polled for it: where there is a device, memory alone is looked at for a moment at most. Where memory was overwritten the
  // wait ends too, without `done()`, and overwritten_ says so.
  template <typename Done, typename Awaited>
  void AwaitHost(const Done& done, const Awaited& awaited) {
    if (device_ != nullptr && !neighbors_) return device_->Await(done);
    if (device_ == nullptr ? HostWait::Spin(done) : HostWait::Glance(done)) return;
    SleepForHost(done, awaited);
  }
  template <typename Done, typename Awaited>
  void SleepForHost(const Done& done, const Awaited& awaited) {
    const HostWait wait(own_.control, done);
    for (auto slice = kFirstSlice; !done(); slice = std::min(2 * slice, kLongestSlice)) {
      const auto deadline = std::chrono::steady_clock::now() + slice;
      if (device_ != nullptr) {
        device_->AwaitUntil(done, deadline);
      } else {
        Progress::WaitUntil(done, deadline);
      }
      if (done()) return;
      if (const int rank = awaited(); rank >= 0) (void)host_.Ended(rank);
      if (slice == kLongestSlice && overwritten_.empty()) overwritten_ = shm::OwnWords::FindOverwritten();
      if (!overwritten_.empty()) return;
    }
  }

  Error AcquireLock(int rank, bool exclusive);
  // Takes the locks that the thread noted, of any window; only those before `until`, if it is listed. One that cannot be had is the error of its own
  // epoch (Peer::late).
  static void TakeNoted(pthread_t thread, const NotedLock* until);
  static inline NotedLocks noted_locks_;
  Error FlushUsed(bool remote, int rank);
  Error StartFlush(Peer& peer, bool remote, std::vector<Flushing>* flushing);
  Error AwaitFlushed(const std::vector<Flushing>& flushing);
  // Until the counter of each of `ranks` is at least `Peer::*used` plus one.
  Error AwaitCounters(const std::vector<int>& ranks, std::atomic<uint32_t> Signals::*which, uint32_t Peer::*used,
                      const char* call);
  Error RanksOf(const Group& group, std::vector<int>* ranks) const;
  Error Unlocked(const std::vector<int>& ranks);
  Error StartUnlock(Peer& peer, std::deque<ReplyWaiter>* waiters, std::vector<Flushing>* flushing, bool* told);
  Error Outcome();
  Error OperationOutcome() {
    if (operation_failed_) [[unlikely]] return TakeOperationError();
    return {};
  }
  Error TakeOperationError();
  bool Gone(const Peer& peer) const;
  int RankOf(const Peer& peer) const { return static_cast<int>(&peer - peers_.data()); }
  struct HostCard;
  Error GatherCards(Comm& parent, Error failed);
  uint8_t* MapOf(const HostCard& card, int rank, size_t* bytes);
  bool HasNumber(ProcessId process, int32_t pid) const;
  bool Meet(const HostCard& card, int rank);
  bool ReachesAll() const;
  void SettleWays();
  AccumulateGuard GuardOf(int rank);
  void TellTheWays();
  Error GoneError(int rank) const;
  Error OverwrittenError() const { return Error(MPI_ERR_OTHER, overwritten_); }
  // A word in the control block of `rank` is not what it has to be. The call that finds it fails, or the next one that ends or begins an epoch.
  void NoteOverwritten(const char* what, int rank);
  // Notes that a counter of `rank`'s, which comes to `wanted` from one less, is neither.
  void CheckCounter(const std::atomic<uint32_t>& counter, uint32_t wanted, int rank, const char* what);

  // A wait is no longer than this without a look at who is waited for. Should a bell be lost, it costs as much.
  static constexpr std::chrono::milliseconds kFirstSlice{20}, kLongestSlice{160};

  Device* device_ = nullptr;
  EpochState epochs_;
  HostRanks host_;
  HostRange range_;          // of each rank the control block and allocated memory
  HostMemory::Use own_memory_;  // what MPI_Win_create was given, if it is of MPI_Alloc_mem
  HostSegment own_segment_;  // ... of this one, where not all are in a range
  std::unique_ptr<uint8_t[]> own_control_;  // the control block, where there is no segment
  const bool same_host_;     // what WEFT_SAME_HOST says where nobody asked for a wire
  bool neighbors_ = false;   // other ranks say that they are on this host: one of them may have mapped what this one shares
  bool all_here_ = false;    // this one reaches each through memory, and so do all ranks
  bool takes_parcels_ = false;  // all ranks do: the target of small pieces may be left to do its part
  std::vector<int> deferred_;   // ranks for which there may be something in Peer::parcel
  TargetWindow own_;
  std::vector<Peer> peers_;  // by rank
  std::vector<int> used_;    // ranks with Peer::used
  ibv_mr* mr_ = nullptr;
  void* allocated_ = nullptr;
  size_t allocated_bytes_ = 0;
  SharedSegment segment_;
  std::vector<MPI_Aint> share_offsets_;  // shared windows: by rank, from segment_.data()
  uint32_t fences_ = 0;
  uint32_t tests_ = 0;  // of MPI_Win_test, in vain
  bool start_no_check_ = false;
  bool operation_failed_ = false;  // a target said that memory was not attached, or an accumulate found overwritten words
  Staged staged_;
  bool known_to_service_ = false;
  std::string overwritten_;  // what is not as it should be of what ranks of this host share; no wait for it ends
  Words words_{*this};
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_RDMA_WINDOW_H_
