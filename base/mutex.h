#ifndef BASE_MUTEX_H_
#define BASE_MUTEX_H_

#include <atomic>
#include <cstdint>

namespace weft {

// As std::mutex, with what an uncontended caller does inlined: a third of its price. A waiter sleeps. Not recursive.
//
// try_lock() and unlock() are sequentially consistent, also a try_lock() that fails. So of two threads one sees the other: the one stores a flag and then
// fails to get the mutex, the other lets go of it and then loads the flag, both by sequentially consistent operations. Loads of other kinds may come before
// unlock() on a weakly ordered processor.
class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  bool try_lock() {
    uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_seq_cst);
  }
  void lock() {
    if (!try_lock()) [[unlikely]] Await();
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_seq_cst) == kAwaited) [[unlikely]] state_.notify_one();
  }

 private:
  enum : uint32_t { kFree, kHeld, kAwaited };

  // Who has waited leaves it kAwaited, since others may wait still.
  [[gnu::noinline]] void Await() {
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) state_.wait(kAwaited, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace weft

#endif  // BASE_MUTEX_H_
