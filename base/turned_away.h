#ifndef BASE_TURNED_AWAY_H_
#define BASE_TURNED_AWAY_H_

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace weft {

// For polls that may find another thread at work, and come again rather than wait. That thread may be waiting for this very processor, and would for as
// long as the program's time slice lasts: one poll in 32 yields it. Thread safe; several threads count roughly.
class TurnedAway {
 public:
  // A poll found another thread there.
  void Note() {
    const uint32_t times = times_.load(std::memory_order_relaxed) + 1;
    times_.store(times % kBeforeYield, std::memory_order_relaxed);
    if (times == kBeforeYield) sched_yield();
  }

 private:
  static constexpr uint32_t kBeforeYield = 32;
  std::atomic<uint32_t> times_{0};  // since the last yield
};

}  // namespace weft

#endif  // BASE_TURNED_AWAY_H_
