#ifndef BASE_TURNED_AWAY_H_
#define BASE_TURNED_AWAY_H_

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace weft {

// For polls that return, rather than wait, if another thread is at work, and are called again. That thread may need the
// processor on which the caller polls, and would not get it until the caller's time slice ends. So one such poll in 32
// yields. Thread safe; with several threads the count is approximate.
class TurnedAway {
 public:
  // To be called when a poll found another thread at work.
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
