#ifndef MPI_HYBRID_CORE_LOCK_H_
#define MPI_HYBRID_CORE_LOCK_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace weft::mpi {

// The one lock of the library. All code in mpi_hybrid/ runs under it, except the thread of the RMA target. It costs
// nothing until MPI_THREAD_MULTIPLE is granted, or until the library itself starts a thread that needs the lock. From
// then on every function of api/ takes it, and the progress engine releases it while it sleeps.
class LibraryLock {
 public:
  // Call this before a second thread can be inside the library; it cannot be undone. The caller is inside an entry
  // (under its LockGuard) and holds the lock when this returns.
  static void EnableThreads();
  static bool threads_enabled() { return enabled_; }
  // The level of thread support in force, MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE: the highest one granted to the
  // program. MPI_THREAD_MULTIPLE enables threads.
  static void GrantLevel(int level);
  static int level() { return level_; }

  // For the progress engine, around a sleep and around callbacks into the program. No effect while threads are
  // disabled.
  static void Acquire() {
    if (!enabled_) return;
    if (!mutex_.try_lock()) [[unlikely]] AcquireAwaited();
    ++depth_;
  }
  static void Release() {
    if (!enabled_) return;
    --depth_;
    mutex_.unlock();
  }

  // Bytes to copy between two calls of HandOver.
  static constexpr uint64_t kMostCopied = 4 << 20;
  // Whether another thread waits for the lock. The caller holds it.
  static bool IsAwaited() { return waiting_.load(std::memory_order_relaxed) != 0; }
  // Call this between two parts of a long operation. If threads wait for the lock, one of them gets it, and the caller
  // holds it again when this returns. (The mutex alone would return the lock to the thread that has just released it,
  // since that thread is already running.) No effect in a function of the program that runs under the lock.
  static void HandOver() {
    if (IsAwaited() && depth_ == 1) [[unlikely]] LetOneIn();
  }

 private:
  static void AcquireAwaited();
  static void LetOneIn();

  static bool enabled_;
  static int level_;
  static int depth_;  // how often the thread that holds the lock has acquired it; guarded by it
  // Number of waiting threads; only threads without the lock change it. A hint: a waiting thread that is not seen yet
  // waits until the next hand-over.
  static std::atomic<int> waiting_;
  // How often a waiting thread has got the lock. Changed under the lock. LetOneIn loads it under the lock and then
  // waits for it to change.
  static std::atomic<uint32_t> taken_;
  // Recursive: functions of the program that run under the lock (reductions, copies of attributes) may call the library
  // about their arguments.
  static std::recursive_mutex mutex_;
};

// One call of the program into the library.
class LockGuard {
 public:
  LockGuard() { LibraryLock::Acquire(); }
  ~LockGuard() { LibraryLock::Release(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
};

// Used inside a LockGuard, around a callback into the program or around an operation that blocks. Callbacks in C++ may
// leave by an exception.
class UnlockGuard {
 public:
  UnlockGuard() { LibraryLock::Release(); }
  ~UnlockGuard() { LibraryLock::Acquire(); }
  UnlockGuard(const UnlockGuard&) = delete;
  UnlockGuard& operator=(const UnlockGuard&) = delete;
};

// Returns the result of `call`, without holding the lock. `call` may block (a disk, another process) and uses nothing
// that the lock guards. Other threads may enter the library meanwhile.
template <typename Call>
auto Unlocked(Call call) {
  const UnlockGuard unlocked;
  return call();
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_LOCK_H_
