#ifndef MPI_HYBRID_RMA_WINDOW_LOCK_H_
#define MPI_HYBRID_RMA_WINDOW_LOCK_H_

#include "mpi_hybrid/rma/control_block.h"

namespace weft::mpi::rma {

// The lock of MPI_Win_lock at one target (MPI 4.0 section 12.5.3), in the target's control block. The processes of its
// host take it directly; the target's service takes it on behalf of the others. Its whole state consists of words that
// each rank writes about itself. Therefore the share of a dead rank can be removed, and there is no count that could be
// left wrong.
//
// A rank that wants to share the lock sets its word, and withdraws if another rank holds the lock exclusively or is
// promised it. A rank that wants it exclusively announces that first; from then on no new rank shares it. It holds the
// lock when the last sharing rank has released it.
//
// Ranks in an epoch of MPI_Win_lock_all are an exception: they overtake a promise. They take the locks of targets one
// by one, at the first use of each target. Thus such a rank may share one lock while it waits for another. The rank
// that was promised the first lock may itself wait, at the other target, for ranks of this kind.
class WindowLock {
 public:
  WindowLock() = default;
  explicit WindowLock(const ControlBlock& control) : control_(control) {}

  // Whether `rank` has the lock now. A rank that has it, or tries for it, in one mode does not try in the other.
  bool TryShared(int rank, bool overtakes = false) const;
  // `stay`: if other ranks share the lock, `rank` is the next to have it, and must try until it does.
  bool TryExclusive(int rank, bool stay) const;
  // Whether a try may succeed; only reads.
  bool MayShare(bool overtakes = false) const;
  bool MayTakeExclusive(int rank) const;
  // `rank` releases the lock, or stops trying for it, in either mode. No effect on other ranks. False: it did neither.
  // If the next waiting rank behind `rank` wants the lock exclusively, it is promised to that rank. Therefore a rank
  // that releases a lock and wants it again at once does not get it before ranks that have asked meanwhile.
  bool Release(int rank) const;
  // The same for a rank that died, which also stops waiting.
  void Forget(int rank) const;

  // A rank that sleeps until the lock is released calls StartWaiting before its last try, and StopWaiting when it has
  // the lock.
  void StartWaiting(int rank, bool exclusive) const;
  void StopWaiting(int rank) const;
  // Calls wake(rank) for each sleeping rank. For use after Release, and after a failed try.
  template <typename Wake>
  void ForEachWaiting(Wake wake) const {
    if (control_.head->waiters.load() == 0) [[likely]]
      return;
    for (int rank = 0; rank < control_.ranks; ++rank) {
      if (control_.waiting[rank].load() != 0) wake(rank);
    }
  }

  // A rank other than `rank` that has the lock or is promised it; -1: none. The answer is always a rank of the window,
  // whatever another process has written into the memory; an invalid value is cleared.
  int Holder(int rank) const;

 private:
  bool AnyoneShares() const;
  // The value of `writer` when `rank`, the exclusive holder, releases the lock.
  uint32_t WriterAfter(int rank) const;

  ControlBlock control_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_WINDOW_LOCK_H_
