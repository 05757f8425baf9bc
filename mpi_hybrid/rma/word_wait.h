#ifndef MPI_HYBRID_RMA_WORD_WAIT_H_
#define MPI_HYBRID_RMA_WORD_WAIT_H_

#include <atomic>
#include <chrono>

#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/p2p/host_wait.h"
#include "mpi_hybrid/rma/control_block.h"

namespace weft::mpi::rma {

// A wait for words of a window's control block.
class WordWait final : public HostWait {
 public:
  // `check` must only read. It must outlive this object.
  template <typename Check>
  WordWait(const ControlBlock& mine, const Check& check)
      : mine_(mine), check_([](const void* it) { return (*static_cast<const Check*>(it))(); }), argument_(&check) {}

  template <typename Check>
  static bool Spin(const Check& check) {
    ++g_counters.memory_waits;
    return HostWait::Spin(check, std::chrono::microseconds(20));
  }

  bool IsOver() const override { return check_(argument_); }
  bool Arm() override {
    mine_.head->asleep.store(1, std::memory_order_relaxed);
    // Pairs with HostRanks::Wake. A writer stores its word and then checks `asleep`; this thread stores `asleep` and
    // then checks the words. At least one of the two sees the other's store. Without the fence, the acquire loads of the
    // check could pass that store.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return !IsOver();
  }
  void Disarm() override { mine_.head->asleep.store(0); }

 private:
  const ControlBlock mine_;
  bool (*const check_)(const void*);
  const void* const argument_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_WORD_WAIT_H_
