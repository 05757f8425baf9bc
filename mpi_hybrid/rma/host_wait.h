#ifndef MPI_HYBRID_RMA_HOST_WAIT_H_
#define MPI_HYBRID_RMA_HOST_WAIT_H_

#include <chrono>

#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/rma/control_block.h"

namespace weft::mpi::rma {

// A wait for a change that other processes of this host write into memory. The object exists while a thread runs
// Progress until the change has come. If that sleeps, a process that makes a change sees it in the control block and
// rings the bell. Call with the library's lock held.
class HostWait {
 public:
  // `check` must only read. It must outlive this object.
  template <typename Check>
  HostWait(const ControlBlock& mine, const Check& check)
      : mine_(mine), check_([](const void* it) { return (*static_cast<const Check*>(it))(); }), argument_(&check) {
    Enter();
  }
  ~HostWait();
  HostWait(const HostWait&) = delete;
  HostWait& operator=(const HostWait&) = delete;

  // Polls as long as that is likely to take less time than a sleep, and yields the processor if ranks share one.
  // Returns whether the change has come. Polls nothing else, so it is only for changes that come through memory.
  template <typename Check>
  static bool Spin(const Check& check) {
    ++g_counters.memory_waits;
    for (Spinner spinner; spinner.Goes();) {
      if (check()) return true;
    }
    return false;
  }

  // The same if the change may also come by message: polls without pauses, for less time than one poll for messages
  // takes.
  template <typename Check>
  static bool Glance(const Check& check) {
    for (int looks = 0; looks < kEager; ++looks) {
      if (check()) return true;
    }
    return false;
  }

  // Called by MPI_Finalize.
  static void Close();

 private:
  friend class BellStage;
  class Spinner {
   public:
    Spinner();
    bool Goes();

   private:
    int turns_ = 0;
    bool yields_;
    std::chrono::steady_clock::time_point end_;
  };
  // Number of polls without pauses: as long as a copy of some KiB takes, to notice the change at once.
  static constexpr int kEager = 48;

  void Enter();
  bool IsOver() const { return check_(argument_); }

  const ControlBlock mine_;
  bool (*const check_)(const void*);
  const void* const argument_;
  bool told_ = false;  // whether the end of the wait was reported
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_WAIT_H_
