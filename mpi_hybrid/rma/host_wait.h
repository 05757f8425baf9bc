#ifndef MPI_HYBRID_RMA_HOST_WAIT_H_
#define MPI_HYBRID_RMA_HOST_WAIT_H_

#include <chrono>

#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/rma/control_block.h"

namespace weft::mpi::rma {

// A wait for what other processes of this host write into memory: there while a thread goes on with Progress until it
// has come. While that sleeps, who writes sees it in the control block and rings the bell. With the library's lock.
class HostWait {
 public:
  // `check` only looks; it outlives this object.
  template <typename Check>
  HostWait(const ControlBlock& mine, const Check& check)
      : mine_(mine), check_([](const void* it) { return (*static_cast<const Check*>(it))(); }), argument_(&check) {
    Enter();
  }
  ~HostWait();
  HostWait(const HostWait&) = delete;
  HostWait& operator=(const HostWait&) = delete;

  // Looks again and again for as long as that is likely to be shorter than what a sleep takes, and lets others have the
  // processor where ranks share one. Whether it has come. Nothing else is polled meanwhile: only for what memory alone can bring.
  template <typename Check>
  static bool Spin(const Check& check) {
    ++g_counters.memory_waits;
    for (Spinner spinner; spinner.Goes();) {
      if (check()) return true;
    }
    return false;
  }

  // The same where messages may bring it, too: looks one right after the other, in less time than one poll for messages takes.
  template <typename Check>
  static bool Glance(const Check& check) {
    for (int looks = 0; looks < kEager; ++looks) {
      if (check()) return true;
    }
    return false;
  }

  // MPI_Finalize.
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
  // Looks one right after the other: as long as a copy of some KiB takes, to be gone as soon as it is there.
  static constexpr int kEager = 48;

  void Enter();
  bool IsOver() const { return check_(argument_); }

  const ControlBlock mine_;
  bool (*const check_)(const void*);
  const void* const argument_;
  bool told_ = false;  // that it is over
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_WAIT_H_
