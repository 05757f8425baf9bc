#ifndef MPI_HYBRID_RMA_ACCUMULATE_TURN_H_
#define MPI_HYBRID_RMA_ACCUMULATE_TURN_H_

#include <pthread.h>

#include "mpi_hybrid/rma/control_block.h"
#include "mpi_hybrid/rma/host_ranks.h"

namespace weft::mpi::rma {

// Is asked when the turn of another rank has lasted so long that it may never end.
class TurnWatch {
 public:
  // Whether another process of the user wrote into the memory that ranks of this host share. `alone`: this rank has the memory of `target` alone.
  virtual bool IsOverwritten(int target, bool alone) = 0;

 protected:
  ~TurnWatch() = default;
};

// What keeps accumulates on one target's memory apart, whoever does them (MPI 4.0 section 12.7.1: each is atomic for each
// element). Few elements are worked on by the processor's atomic operations, many at once, and then by nobody else.
struct AccumulateGuard {
  // The memory is such that others map it. Elements that have them are left to the processor's atomic operations (element_atomics.h); a process that
  // could not map it takes a WholeTurn.
  bool atomics = false;
  pthread_mutex_t* mutex = nullptr;  // of shared windows whose ranks do not reach one another's control blocks
  ControlBlock control;              // of the target, when there is no mutex. None: nobody else is there
  HostRanks* host = nullptr;
  int target = 0;
  int me = 0;           // rank of this process
  bool served = true;   // the target has a service, which works on behalf of ranks elsewhere
  bool serves = false;  // this is the target's service, on behalf of ranks elsewhere
  TurnWatch* watch = nullptr;  // after which nobody is waited for. None: it is not known

  // Where this one says that it is in atomic operations. None: nobody else is there.
  std::atomic<uint32_t>* in_atomics() const {
    if (!control) return nullptr;
    return serves ? &control.head->service_in_atomics : &control.signals[me].in_atomics;
  }
  // From so many elements on it is cheaper to have the memory alone, for which one looks at a line of each rank.
  uint32_t many() const { return 4 + static_cast<uint32_t>(control.ranks); }
};

// While one lives, its thread may work on elements by atomic operations. Of each `in_atomics` one thread at a time.
class AtomicTurn {
 public:
  explicit AtomicTurn(const AccumulateGuard& guard) : said_(guard.in_atomics()) {
    if (said_ == nullptr) return;
    // This and what an AccumulateLock does are in one order for all: at least one sees the other.
    said_->store(1);
    if (guard.control.head->accumulating.load() != 0) [[unlikely]]
      AwaitTurn(guard);
  }
  ~AtomicTurn() {
    if (said_ != nullptr) said_->store(0, std::memory_order_release);
  }
  AtomicTurn(const AtomicTurn&) = delete;
  AtomicTurn& operator=(const AtomicTurn&) = delete;

 private:
  void AwaitTurn(const AccumulateGuard& guard);

  std::atomic<uint32_t>* const said_;
};

// Held during an accumulate that is not done by atomic operations; is taken over from a process that died with it. Where
// the target's memory has no atomics that is enough.
class AccumulateLock {
 public:
  explicit AccumulateLock(const AccumulateGuard& guard);
  ~AccumulateLock();
  AccumulateLock(const AccumulateLock&) = delete;
  AccumulateLock& operator=(const AccumulateLock&) = delete;

 private:
  const AccumulateGuard& guard_;
};

// While one lives nobody else accumulates, in whichever way.
class WholeTurn {
 public:
  explicit WholeTurn(const AccumulateGuard& guard);

 private:
  const AccumulateLock lock_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_ACCUMULATE_TURN_H_
