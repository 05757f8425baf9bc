#ifndef BASE_MUTEX_H_
#define BASE_MUTEX_H_

#include <atomic>
#include <cstdint>

namespace weft {

// Like std::mutex, but the uncontended case is inlined and costs a third. A waiter sleeps. Not recursive.
//
// try_lock() and unlock() are sequentially consistent, also a try_lock() that fails. This is for two threads of which
// one stores a flag and then fails to get the mutex, while the other unlocks it and then loads the flag. If store and
// load are sequentially consistent too, one of the two threads sees the other. On a weakly ordered processor, loads of
// other kinds may move before unlock().
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

  // A thread that has waited leaves the state at kAwaited, since other threads may still be waiting.
  [[gnu::noinline]] void Await() {
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) state_.wait(kAwaited, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace weft

#endif  // BASE_MUTEX_H_
