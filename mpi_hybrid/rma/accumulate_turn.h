#ifndef MPI_HYBRID_RMA_ACCUMULATE_TURN_H_
#define MPI_HYBRID_RMA_ACCUMULATE_TURN_H_

#include <pthread.h>

#include "mpi_hybrid/rma/control_block.h"
#include "mpi_hybrid/rma/host_ranks.h"

namespace weft::mpi::rma {

// Called when another rank has held its turn for so long that the turn may never end.
class TurnWatch {
 public:
  // Whether another process of the user has overwritten the memory that ranks of this host share. `alone`: this rank
  // has exclusive use of the memory of `target`.
  virtual bool IsOverwritten(int target, bool alone) = 0;

 protected:
  ~TurnWatch() = default;
};

// Keeps accumulates on one target's memory apart, whichever process carries them out (MPI 4.0 section 12.7.1: each is
// atomic per element). For few elements the processor's atomic operations are used. For many, one process gets
// exclusive use of the memory.
struct AccumulateGuard {
  // Other processes map the memory. Elements of a suitable type use the processor's atomic operations
  // (element_atomics.h). A process that could not map the memory takes a WholeTurn.
  bool atomics = false;
  pthread_mutex_t* mutex = nullptr;  // of shared windows whose ranks cannot map one another's control blocks
  ControlBlock control;              // of the target, if there is no mutex. None: no other process takes part
  HostRanks* host = nullptr;
  int target = 0;
  int me = 0;           // rank of this process
  bool served = true;   // the target has a service, which works on behalf of remote ranks
  bool by_rnic = false;  // the target's RNIC carries out atomics on integers of 8 bytes, and takes no turn
  bool serves = false;  // this is the target's service, on behalf of remote ranks
  TurnWatch* watch = nullptr;  // asked when a wait takes too long. None: the caller has no way to find out

  // Where this process announces that it uses atomic operations. None: no other process takes part.
  std::atomic<uint32_t>* in_atomics() const {
    if (!control) return nullptr;
    return serves ? &control.head->service_in_atomics : &control.signals[me].in_atomics;
  }
  // From this number of elements on, exclusive use of the memory is cheaper, although it must check one cache line per
  // rank.
  uint32_t many() const { return 4 + static_cast<uint32_t>(control.ranks); }
};

// While an object lives, its thread may work on elements by atomic operations. At most one thread at a time per
// `in_atomics`.
class AtomicTurn {
 public:
  explicit AtomicTurn(const AccumulateGuard& guard) : said_(guard.in_atomics()) {
    if (said_ == nullptr) return;
    // This store and those of an AccumulateLock are in one order for all processes: at least one of the two sees the
    // other.
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

// Held during an accumulate that does not use atomic operations. It is taken over from a process that died while it
// held it. It suffices alone if the target's memory has no atomics.
class AccumulateLock {
 public:
  explicit AccumulateLock(const AccumulateGuard& guard);
  ~AccumulateLock();
  AccumulateLock(const AccumulateLock&) = delete;
  AccumulateLock& operator=(const AccumulateLock&) = delete;

 private:
  const AccumulateGuard& guard_;
};

// While an object lives, no other process or thread accumulates, by any method.
class WholeTurn {
 public:
  explicit WholeTurn(const AccumulateGuard& guard);

 private:
  const AccumulateLock lock_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_ACCUMULATE_TURN_H_
