#ifndef MPI_HYBRID_RMA_RDMA_WINDOW_H_
#define MPI_HYBRID_RMA_RDMA_WINDOW_H_

#include <deque>
#include <memory>
#include <vector>

#include "mpi_hybrid/rma/blocks.h"
#include "mpi_hybrid/rma/device.h"
#include "mpi_hybrid/rma/epoch.h"
#include "mpi_hybrid/rma/link.h"
#include "mpi_hybrid/rma/shared_segment.h"
#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/window.h"

namespace weft::mpi::rma {

// A window over an RDMA device. Put and Get are RDMA Writes and Reads where memory is in large enough pieces; the rest are
// messages that the target's service applies (wire.h). Memory of this process, and of all in a shared window, is reached
// directly.
class RdmaWindow final : public Window {
 public:
  // `device` is null when there is none: then Publish fails, and nothing else is called.
  RdmaWindow(Device* device, Ref<Comm> over);
  ~RdmaWindow() override;

  // Collective over `parent`, the program's communicator: the rest of construction. `failed`: why this process cannot; all
  // fail then.
  Error Publish(Comm& parent, const Error& failed);
  // Before Publish.
  Error Register();                // `base` and `size`, for others to reach
  Error Allocate(MPI_Aint bytes);  // memory of its own
  // Collective over `parent`, also of those who have failed; returns that then, or another's failure.
  Error ShareMemory(Comm& parent, MPI_Aint bytes, bool contiguous, Error failed);

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
  // What is known of a rank.
  struct Peer {
    ProcessId process = 0;
    uint64_t base = 0, size = 0;
    int unit = 1;
    uint32_t key = 0;
    uint32_t window = 0;
    uint8_t* local = nullptr;  // its memory, when `here`; dynamic windows: null, offsets are addresses
    bool here = false;         // this process can reach it
    bool used = false;         // in used_: operations since the last flush
    uint32_t operations = 0;   // so far, modulo 2^32
    bool being_locked = false;  // a thread waits for the lock of the epoch, or for the post of MPI_Win_start's
    LockKind wanted = LockKind::kNone;  // of MPI_Win_lock's epoch
    bool locked = false;        // really; until then nothing was sent
    bool post_seen = false;    // of the epoch of MPI_Win_start
    uint32_t posts_used = 0, completes_used = 0;
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
  // are one message.
  struct Staged {
    int rank = -1;  // -1: none
    MessageKind kind = MessageKind::kPut;
    size_t bytes = 0;
    Reply reply;
    bool wants_reply = false;
    std::unique_ptr<uint8_t[]> body;
  };
  struct Flushing;

  Error CheckRank(int rank) const;
  Error BeginAccess(const Target& target, MPI_Aint origin_bytes, bool with_request, Access* access);
  Error CheckRange(const Target& target, const Peer& peer, uint64_t* offset) const;
  Error EnsureAccess(int rank);
  bool Stage(const Target& target, const Access& access, bool with_request);
  Error BeginData(const Access& access, uint8_t** room);
  // `more`: another message of the operation follows.
  Error SendData(const Access& access, MessageKind kind, size_t bytes, const Reply* reply, bool more);
  Error SendStaged(Peer& peer);
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
  Error AccumulateHere(const Access& access, const Origin& origin, const Origin* result, const Target& target, const Op& op,
                       const ElementType& type);

  Error AcquireLock(int rank, bool exclusive);
  Error FlushUsed(bool remote, int rank);
  Error StartFlush(Peer& peer, bool remote, std::vector<Flushing>* flushing);
  Error AwaitFlushed(const std::vector<Flushing>& flushing);
  // Until the counter of each of `ranks` is at least `Peer::*used` plus one.
  Error AwaitCounters(const std::vector<int>& ranks, const TargetWindow::Counters& counters, uint32_t Peer::*used,
                      const char* call);
  Error RanksOf(const Group& group, std::vector<int>* ranks) const;
  Error Unlocked(const std::vector<int>& ranks);
  Error StartUnlock(Peer& peer, std::deque<ReplyWaiter>* waiters, std::vector<Flushing>* flushing);
  Error Outcome();
  bool Gone(const Peer& peer) const;
  Error GoneError(int rank) const;

  Device* const device_;
  EpochState epochs_;
  TargetWindow own_;
  std::vector<Peer> peers_;  // by rank
  std::vector<int> used_;    // ranks with Peer::used
  ibv_mr* mr_ = nullptr;
  void* allocated_ = nullptr;
  size_t allocated_bytes_ = 0;
  SharedSegment segment_;
  std::vector<MPI_Aint> share_offsets_;  // shared windows: by rank, from segment_.data()
  uint32_t fences_ = 0;
  bool start_no_check_ = false;
  bool out_of_range_ = false;  // a target said so
  Staged staged_;
  bool known_to_service_ = false;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_RDMA_WINDOW_H_
