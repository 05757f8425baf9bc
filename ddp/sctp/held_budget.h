#ifndef DDP_SCTP_HELD_BUDGET_H_
#define DDP_SCTP_HELD_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace weft::ddp::sctp {

// Blocks of memory for messages that are held, of all associations together. They share it as the ports of a switch share its memory
// (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998): each may have half as many as are free. A few have what
// they need; if many want more, each gets the same, and some are left for one that comes later. Every association may have kOwn, whatever the others have.
//
// Thread safe. Two associations that ask at the same time may both get the last block: the bound is one of memory, not of correctness.
class HeldBudget {
 public:
  static constexpr size_t kOwn = 2;

  explicit constexpr HeldBudget(size_t blocks) : blocks_(blocks) {}
  HeldBudget(const HeldBudget&) = delete;

  // Whether an association that has `own` of them may take another.
  bool Allows(size_t own) const { return own < std::max(kOwn, (blocks_ - std::min(blocks_, taken())) / 2); }
  void Take() { taken_.fetch_add(1, std::memory_order_relaxed); }
  void GiveBack(size_t count) { taken_.fetch_sub(count, std::memory_order_relaxed); }
  size_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  const size_t blocks_;
  std::atomic<size_t> taken_{0};
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_HELD_BUDGET_H_
