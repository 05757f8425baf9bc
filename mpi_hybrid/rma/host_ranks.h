#ifndef MPI_HYBRID_RMA_HOST_RANKS_H_
#define MPI_HYBRID_RMA_HOST_RANKS_H_

#include <atomic>
#include <memory>

#include "mpi_hybrid/host/process.h"
#include "mpi_hybrid/host/sealed_memory.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/rma/control_block.h"

namespace weft::mpi::rma {

// The ranks of a window that this process reaches through shared memory, including itself: their segments, and
// operations on them that any thread may call. It is filled while the window is made and constant from then on.
class HostRanks {
 public:
  struct One {
    host::SealedMemory segment;  // of other processes
    ControlBlock control;  // none: the rank is not reached through memory
    std::shared_ptr<host::Process> process;  // null: this process
    int place = -1;  // in the host's segment; -1: it has none, and a bell
    host::BellName bell;
    std::atomic<bool> ended{false};  // once true, it stays true; publishes nothing
  };

  explicit HostRanks(int ranks) : ranks_(new One[static_cast<size_t>(ranks)]) {}

  One& of(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const ControlBlock& control(int rank) const { return ranks_[static_cast<size_t>(rank)].control; }

  // Call it after a change that `rank` may wait for, made by a sequentially consistent operation or followed by such a
  // fence. Pairs with the fence of a thread that goes to sleep (WordWait::Arm).
  void Wake(int rank) {
    One& one = of(rank);
    if (!one.control || one.control.head->asleep.load() == 0 || one.control.head->asleep.exchange(0) == 0) return;
    if (one.place >= 0) {
      host::ThisHost()->RingAfterFence(one.place);
    } else {
      host::OwnBell().Ring(one.bell);
    }
  }
  // Asks the system whether the rank's process has ended. False for ranks that are not reached through memory.
  bool Ended(int rank) {
    One& one = of(rank);
    if (!one.control || one.process == nullptr) return false;
    if (!one.ended.load(std::memory_order_relaxed) && one.process->HasEnded()) one.ended = true;
    return one.ended;
  }
  // Whether an earlier check found that it has ended.
  bool known_ended(int rank) const { return ranks_[static_cast<size_t>(rank)].ended.load(std::memory_order_relaxed); }

 private:
  std::unique_ptr<One[]> ranks_;  // by rank
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_RANKS_H_
