#ifndef DDP_SCTP_HELD_BUDGET_H_
#define DDP_SCTP_HELD_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace weft::ddp::sctp {

// The blocks of memory in which all associations together hold messages. They share it as the ports of a switch share
// its memory (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998): each
// association may have at most half as many blocks as are free. If few need memory, they get what they need. If many
// do, each gets the same, and some blocks stay free for later ones. Each association may have kOwn blocks, regardless
// of the others.
//
// Thread safe. Two associations that ask at the same time may both get the last block, so the limit can be exceeded
// slightly.
class HeldBudget {
 public:
  static constexpr size_t kOwn = 2;

  explicit constexpr HeldBudget(size_t blocks) : blocks_(blocks) {}
  HeldBudget(const HeldBudget&) = delete;

  // Whether an association that has `own` blocks may take another.
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
