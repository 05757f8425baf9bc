#ifndef MPI_HYBRID_RMA_WINDOW_LOCK_H_
#define MPI_HYBRID_RMA_WINDOW_LOCK_H_

#include "mpi_hybrid/rma/control_block.h"

namespace weft::mpi::rma {

// The lock of MPI_Win_lock at one target (MPI 4.0 section 12.5.3), in its control block. The processes of its host take
// it by themselves, the target's service on behalf of the rest. It is all in what each rank wrote of itself, so that
// what a dead rank had can be taken away, and nothing is counted that could be left wrong.
//
// Who wants to share it says so, and backs off if somebody has it alone, or is promised that. Who wants it alone says so
// first, from when on nobody new shares it, and has it when the last one that does is gone.
//
// But for those in an epoch of MPI_Win_lock_all, who overtake a promise: they take the locks of targets one by one, as they
// use them, so that they may share one lock while they wait for another, and whoever was promised the one may wait for the
// like of them at the other.
class WindowLock {
 public:
  WindowLock() = default;
  explicit WindowLock(const ControlBlock& control) : control_(control) {}

  // Whether `rank` has it now. A rank that has it, or tries for it, in one way does not try in the other.
  bool TryShared(int rank, bool overtakes = false) const;
  // `stay`: if others share it the rank is the next to have it, and tries until it does.
  bool TryExclusive(int rank, bool stay) const;
  // Whether trying may help; only looks.
  bool MayShare(bool overtakes = false) const;
  bool MayTakeExclusive(int rank) const;
  // `rank` no longer has it, or no longer tries, in either way; harmless for others. False: it did neither. Of the ranks that wait the next one behind `rank` is promised it
  // if it wants it alone: who gives a lock back and wants it again at once does not have it before those that asked meanwhile.
  bool Release(int rank) const;
  // The same of one that died: nor does it wait any more.
  void Forget(int rank) const;

  // A rank that sleeps until somebody gives the lock back says so from before its last try until it has it.
  void StartWaiting(int rank, bool exclusive) const;
  void StopWaiting(int rank) const;
  // After Release, and after a try that failed: calls wake(rank) for each that sleeps.
  template <typename Wake>
  void ForEachWaiting(Wake wake) const {
    if (control_.head->waiters.load() == 0) [[likely]]
      return;
    for (int rank = 0; rank < control_.ranks; ++rank) {
      if (control_.waiting[rank].load() != 0) wake(rank);
    }
  }

  // A rank other than `rank` that has the lock, or is to have it; -1: nobody. The answer is a rank, whatever somebody
  // wrote into the memory; what is no rank's is taken back.
  int Holder(int rank) const;

 private:
  bool AnyoneShares() const;
  // What the lock is when `rank`, who had it alone, gives it back.
  uint32_t WriterAfter(int rank) const;

  ControlBlock control_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_WINDOW_LOCK_H_
