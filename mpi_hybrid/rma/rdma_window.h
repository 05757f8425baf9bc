#ifndef MPI_HYBRID_RMA_RDMA_WINDOW_H_
#define MPI_HYBRID_RMA_RDMA_WINDOW_H_

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "mpi_hybrid/host/own_words.h"
#include "mpi_hybrid/rma/blocks.h"
#include "mpi_hybrid/rma/device.h"
#include "mpi_hybrid/rma/epoch.h"
#include "mpi_hybrid/rma/host_memory.h"
#include "mpi_hybrid/rma/host_range.h"
#include "mpi_hybrid/rma/host_ranks.h"
#include "mpi_hybrid/rma/link.h"
#include "mpi_hybrid/rma/noted_locks.h"
#include "mpi_hybrid/rma/parcel.h"
#include "mpi_hybrid/rma/process_copy.h"
#include "mpi_hybrid/rma/shared_segment.h"
#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/window.h"
#include "mpi_hybrid/rma/word_wait.h"

namespace weft::mpi::rma {

// A window over shared memory and an RDMA device; each target is reached by one of the two. For targets on this host,
// this process accesses the memory itself: it is mapped, or the kernel copies from and to it. All synchronization uses
// their control block (control_block.h). For other targets, Put and Get are RDMA Writes and Reads if the memory has
// large enough pieces; all else are messages that the target's service applies (wire.h). If no rank of the window has a
// target on another host, there is no device.
class RdmaWindow final : public Window {
 public:
  explicit RdmaWindow(Ref<Comm> over);
  ~RdmaWindow() override;

  // The steps of construction. First come the local parts: memory, if the window provides it, and the control block.
  // Collective steps are collective over `parent`, the program's communicator. All ranks take part, even those that
  // have `failed`; the step then returns that failure, or one of another rank.
  // collective: memory in the host's segment, if all ranks are in the segment
  Error ShareRange(Comm& parent, MPI_Aint bytes, Error failed);
  Error Allocate(MPI_Aint bytes);
  Error ShareMemory(Comm& parent, MPI_Aint bytes, bool contiguous, Error failed);  // collective
  void MakeControl();
  // Collective: finds the ranks that are on this host (meet_host.cc).
  Error MeetHost(Comm& parent, Error failed);
  Error Reach();  // opens the device and registers `base` and `size` for others, unless all ranks are on this host
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
  // What this process knows of a rank.
  struct Peer {
    ProcessId process = 0;
    uint64_t base = 0, size = 0;
    int unit = 1;
    uint32_t key = 0;
    uint32_t window = 0;
    bool atomics = false;  // its RNIC carries out atomics on the window's memory
    // Reached without a link: mapped at `local` (null for dynamic windows, whose offsets are addresses), or copied by
    // the kernel.
    bool here = false;
    uint8_t* local = nullptr;
    std::shared_ptr<ProcessMemory> private_memory;
    // Memory of MPI_Alloc_mem, which others may map. This process maps it at its first operation. `to_map`: where it
    // is; null after that.
    bool of_host = false;
    std::unique_ptr<HostMemory::Span> to_map;
    uint64_t offset_in_span = 0;
    std::shared_ptr<MappedSpan> mapped;
    // operations that the process of private_memory is to carry out itself; null: never any
    std::unique_ptr<Parcel> parcel;
    ParcelReader parcels;      // those that it hands over to this process
    AccumulateGuard guard;     // of memory that is reached without a link
    // in this fence epoch a message follows the reply of a Get: the next fence may promise to ask (fence_notice.h)
    bool got_early = false;
    bool used = false;         // listed in used_: operations since the last flush
    uint32_t operations = 0;   // so far, modulo 2^32
    // a thread waits for the lock of the epoch, or for the post that MPI_Win_start's epoch needs
    bool being_locked = false;
    LockKind wanted = LockKind::kNone;  // of MPI_Win_lock's epoch
    bool locked = false;        // the lock was really taken; before that nothing was sent
    NotedLock noted;            // listed from MPI_Win_lock until the lock is taken
    Error late;                 // error of taking this lock because a later one was taken; MPI_Win_unlock returns it
    bool post_seen = false;    // the post for the epoch of MPI_Win_start has arrived
    uint32_t posts_used = 0, completes_used = 0;
    SignalCounts told;  // values that this process has written to its control block
    HeldHere held = HeldHere::kNothing;  // the lock in its control block, as this process holds it
  };
  // A communication call that has passed the checks.
  struct Access {
    Peer* peer = nullptr;
    uint64_t offset = 0;   // of the target's origin, from the window's base
    MPI_Aint bytes = 0;    // of data
    Link* link = nullptr;  // null: the peer is reached without a link
    RmaRequest* request = nullptr;
    bool staged = false;   // kept in this process until more of the epoch is known
    bool waits = false;    // its message may wait for Ring()
  };
  // The first operation of an epoch of MPI_Win_lock, if it is one small message. If the epoch ends with it, lock,
  // operation and unlock are sent as one message. It stays in this process until it is sent or the epoch has ended.
  struct Staged {
    int rank = -1;  // -1: none
    MessageKind kind = MessageKind::kPut;
    size_t bytes = 0;
    Reply reply;
    bool wants_reply = false;
    std::unique_ptr<uint8_t[]> body;
  };
  struct Flushing;
  // The words that this process has written in control blocks.
  class Words final : public host::OwnWords, public TurnWatch {
   public:
    explicit Words(RdmaWindow& window) : window_(window) {}

   private:
    std::string Overwritten() const override;
    bool IsOverwritten(int target, bool alone) override;

    RdmaWindow& window_;
    int alone_at_ = -1;  // during IsOverwritten: the target whose memory this rank has alone
  };

  Error CheckRank(int rank) const;
  Error BeginAccess(const Target& target, MPI_Aint origin_bytes, bool with_request, Access* access);
  Error CheckRange(const Target& target, const Peer& peer, uint64_t* offset) const;
  bool InsideAtOnce(const Target& target, const Peer& peer, MPI_Aint bytes, uint64_t* offset) const;
  // Whether an operation can start without waiting and without a message before it.
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
  // Sends lock, operation and unlock in one message. `done` false: the lock is not free.
  Error SendEpoch(Peer& peer, bool* done);
  bool LocalMemoryAttached(const Access& access, const Target& target);
  // Keeps operations on one target in the order of the calls, even if some are messages and some RDMA. (The standard
  // requires less, but ARMCI and libraries above it do not.) An RDMA operation that follows a message which may not
  // have been applied becomes a message (`rdma` false), or waits.
  Error KeepOrder(const Access& access, bool* rdma);
  // Makes the request, calls `body`, which adds parts to it, and gives the request to the caller.
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
  // Asks the target, for dynamic windows. False: use messages.
  Error FindKey(const Access& access, const Target& target, uint32_t* key, bool* found);
  Reply* ReplyFor(const Access& access, bool wanted, Reply* storage);

  // `type` is unchanged if there is no element.
  Error CheckElements(const Origin& origin, const Target& target, const Op& op, ElementType* type) const;
  Error AccumulateThere(const Access& access, const Origin& origin, const Origin* result, const Target& target, const Op& op,
                        const ElementType& type);
  Error AccumulateMessages(const Access& access, const Origin& origin, const Origin* result, const Target& target, const Op& op,
                           const ElementType& type);
  // Whether an accumulate of `type` may be an RDMA atomic.
  bool MayBeAtomic(const Access& access, const Target& target, const ElementType& type) const;
  // `result` null: it is not wanted. `done` false: it has to be a message.
  Error PostAtomic(const Access& access, const RdmaAtomic& atomic, void* result, bool* done);
  Error PutHere(const Access& access, const Origin& origin, const Target& target);
  Error GetHere(const Access& access, const Origin& origin, const Target& target);
  // Whether the kernel must copy the peer's memory. Memory that can be mapped is mapped at its first use.
  bool IsCopied(Peer& peer) {
    if (peer.to_map != nullptr) [[unlikely]] MapMemory(peer);
    return peer.private_memory != nullptr;
  }
  void MapMemory(Peer& peer);
  void MapMemory(Peer& peer, pid_t pid);
  // Operations on memory that the kernel copies (copied.cc).
  Error PutCopied(const Access& access, const Origin& origin, const Target& target);
  Error GetCopied(const Access& access, const Origin& origin, const Target& target);
  Error CopyPieces(Direction direction, const Access& access, const Origin& origin, const Target& target);
  bool GetSpan(const Access& access, const Origin& origin, const Target& target);
  // Operations that may be deferred to the target (helped.cc). `op` null: a Put.
  static bool HasSmallPieces(const Target& target, MPI_Aint bytes);
  bool MayDefer(Peer& peer, const Target& target, MPI_Aint bytes, bool accumulates);
  Error Defer(const Access& access, const Origin& origin, const Target& target, const Op* op, const ElementType& type);
  Error BeforeCopy(Peer& peer);
  Error CarryOutParcel(Peer& peer);
  Error CarryOutDeferred(Peer& peer);
  Error CarryOut(Peer& peer, ByteSpan message);
  Error HandOver(int rank, uint64_t epoch);
  Error HandOverAll();
  Error TakeParcel(int rank, uint64_t epoch);
  Error LeaveFence();
  // The error of a copy that the kernel did not make.
  Error CopyError(const Peer& peer, int error);
  Error AccumulateHere(const Access& access, const Origin& origin, const Origin* result, const Target& target, const Op& op,
                       const ElementType& type);

  // A counter of Signals, this process's own value of it, and the message that increments it at remote ranks.
  struct Sign {
    std::atomic<uint32_t> Signals::*counter;
    uint32_t SignalCounts::*count;
    MessageKind kind;
  };
  static constexpr Sign kFenced{&Signals::fences, &SignalCounts::fences, MessageKind::kFence};
  static constexpr Sign kPosted{&Signals::posts, &SignalCounts::posts, MessageKind::kPost};
  static constexpr Sign kCompleted{&Signals::completes, &SignalCounts::completes, MessageKind::kComplete};

  // Increments a counter in the control block of `rank`, which is reached through memory.
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

  // Like Device::Await; also works without a device.
  template <typename Done>
  void Await(const Done& done) {
    if (device_ != nullptr) return device_->Await(done);
    Progress::WaitUntil(done);
  }
  // Waits until `done()`, which may depend on a process of this host. Such a process has no connection that breaks when
  // it dies. Therefore this asks the system from time to time about the rank `awaited()` (-1: none); Gone() returns the
  // result from then on. A change that comes by message is visible only after this thread has polled for it. If there
  // is a device, memory alone is therefore polled only for a moment. If memory was overwritten, the wait ends without
  // `done()` and sets overwritten_.
  template <typename Done, typename Awaited>
  void AwaitHost(const Done& done, const Awaited& awaited) {
    if (device_ != nullptr && !neighbors_) return device_->Await(done);
    if (device_ == nullptr ? WordWait::Spin(done) : HostWait::Glance(done)) return;
    SleepForHost(done, awaited);
  }
  template <typename Done, typename Awaited>
  void SleepForHost(const Done& done, const Awaited& awaited) {
    WordWait wait(own_.control, done);
    const HostWait::Scope asleep(wait);
    for (auto slice = HostWait::kFirstSlice; !done(); slice = std::min(2 * slice, HostWait::kLongestSlice)) {
      const auto deadline = std::chrono::steady_clock::now() + slice;
      if (device_ != nullptr) {
        device_->AwaitUntil(done, deadline);
      } else {
        Progress::WaitUntil(done, deadline);
      }
      if (done()) return;
      if (const int rank = awaited(); rank >= 0) (void)host_.Ended(rank);
      if (slice == HostWait::kLongestSlice && overwritten_.empty()) overwritten_ = host::OwnWords::FindOverwritten();
      if (!overwritten_.empty()) return;
    }
  }

  Error AcquireLock(int rank, bool exclusive);
  // Takes the locks that the thread has noted, in any window; only those before `until`, if that is listed. If a lock
  // cannot be taken, that is an error of its own epoch (Peer::late).
  static void TakeNoted(pthread_t thread, const NotedLock* until);
  static inline NotedLocks noted_locks_;
  Error FlushUsed(bool remote, int rank);
  Error StartFlush(Peer& peer, bool remote, std::vector<Flushing>* flushing);
  Error AwaitFlushed(const std::vector<Flushing>& flushing);
  // Waits until the counter of each of `ranks` is at least `Peer::*used` plus one.
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
  bool Copies() const;  // this process may copy memory of another one, for which no atomics exclude others
  void SettleWays();
  AccumulateGuard GuardOf(int rank);
  void TellTheWays();
  Error GoneError(int rank) const;
  Error OverwrittenError() const { return Error(MPI_ERR_OTHER, overwritten_); }
  // Records that a word in the control block of `rank` has an impossible value. The call that finds it fails, or the
  // next call that begins or ends an epoch.
  void NoteOverwritten(const char* what, int rank);
  // Records an error if a counter of `rank` has neither the value `wanted` nor one less.
  void CheckCounter(const std::atomic<uint32_t>& counter, uint32_t wanted, int rank, const char* what);

  // Longest wait without a check of the awaited process. It is also the cost of a lost ring.

  Device* device_ = nullptr;
  EpochState epochs_;
  HostRanks host_;
  HostRange range_;          // the control block and the allocated memory of each rank
  HostMemory::Use own_memory_;  // the memory passed to MPI_Win_create, if it came from MPI_Alloc_mem
  host::SealedMemory own_segment_;  // the same for this rank alone, if not all ranks are in a range
  std::unique_ptr<uint8_t[]> own_control_;  // the control block, if there is no segment
  const bool same_host_;     // the value of WEFT_SAME_HOST, unless the user asked for a wire
  // other ranks say that they are on this host: one of them may have mapped memory that this rank shares
  bool neighbors_ = false;
  bool all_here_ = false;    // every rank reaches every other rank through memory
  bool nobody_copies_ = false;  // no rank reaches another one by copies of the kernel
  bool takes_parcels_ = false;  // all ranks do: small pieces may be deferred to the target
  std::vector<int> deferred_;   // ranks whose Peer::parcel may not be empty
  TargetWindow own_;
  std::vector<Peer> peers_;  // by rank
  std::vector<int> used_;    // ranks with Peer::used
  ibv_mr* mr_ = nullptr;
  void* allocated_ = nullptr;
  size_t allocated_bytes_ = 0;
  SharedSegment segment_;
  std::vector<MPI_Aint> share_offsets_;  // shared windows: by rank, from segment_.data()
  uint32_t fences_ = 0;
  uint32_t tests_ = 0;  // unsuccessful calls of MPI_Win_test
  bool start_no_check_ = false;
  // a target reported that memory was not attached, or an accumulate found overwritten words
  bool operation_failed_ = false;
  Staged staged_;
  bool known_to_service_ = false;
  // description of an overwritten word in memory shared with ranks of this host; waits for it never end
  std::string overwritten_;
  Words words_{*this};
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_RDMA_WINDOW_H_
