#ifndef MPI_HYBRID_CORE_LOCK_H_
#define MPI_HYBRID_CORE_LOCK_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace weft::mpi {

// The library's one lock. Everything in mpi_hybrid/ but the RMA target's thread runs under it. Free of charge until
// MPI_THREAD_MULTIPLE was granted (or the library itself started a thread that needs it): then every entry of api/ takes it, and the
// progress engine lets go of it while it sleeps.
class LibraryLock {
 public:
  // Before a second thread can be inside; never undone. Called from inside an entry (under its LockGuard), which has the lock from here on.
  static void EnableThreads();
  static bool threads_enabled() { return enabled_; }
  // The level of thread support in force, MPI_THREAD_SINGLE to _MULTIPLE: the highest that the program has been granted. MULTIPLE enables threads.
  static void GrantLevel(int level);
  static int level() { return level_; }

  // For the progress engine, around a sleep and around callbacks into the program. No effect while threads are not enabled.
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

  // Bytes of one copy between two calls of HandOver.
  static constexpr uint64_t kMostCopied = 4 << 20;
  // Whether another thread waits for the lock, which the caller has.
  static bool IsAwaited() { return waiting_.load(std::memory_order_relaxed) != 0; }
  // Between two parts of long work: if threads wait for the lock, one of them has it before this call returns, and the caller has it again then. (The
  // mutex alone gives the lock back to the thread that has just released it, since that one is already on a processor.) Without effect in a function
  // of the program that runs under the lock.
  static void HandOver() {
    if (IsAwaited() && depth_ == 1) [[unlikely]] LetOneIn();
  }

 private:
  static void AcquireAwaited();
  static void LetOneIn();

  static bool enabled_;
  static int level_;
  static int depth_;  // how often the thread that has the lock has acquired it; guarded by it
  // Threads; only threads without the lock add to it. A hint: one that is not seen waits until the next hand-over.
  static std::atomic<int> waiting_;
  // How often a thread that waited has got it: changed with the lock, loaded with it by who lets one in and then waits for the change.
  static std::atomic<uint32_t> taken_;
  // Recursive: functions of the program that run under it (reductions, copies of attributes) may ask the library about their arguments.
  static std::recursive_mutex mutex_;
};

// One entry of the program into the library.
class LockGuard {
 public:
  LockGuard() { LibraryLock::Acquire(); }
  ~LockGuard() { LibraryLock::Release(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
};

// Around a callback into the program, or something that blocks, inside of a LockGuard; callbacks in C++ may leave by an exception.
class UnlockGuard {
 public:
  UnlockGuard() { LibraryLock::Release(); }
  ~UnlockGuard() { LibraryLock::Acquire(); }
  UnlockGuard(const UnlockGuard&) = delete;
  UnlockGuard& operator=(const UnlockGuard&) = delete;
};

// The result of `call`, which may block (a disk, another process) and uses nothing that the lock guards. Other threads come in meanwhile.
template <typename Call>
auto Unlocked(Call call) {
  const UnlockGuard unlocked;
  return call();
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_LOCK_H_
