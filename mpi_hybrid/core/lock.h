#ifndef MPI_HYBRID_CORE_LOCK_H_
#define MPI_HYBRID_CORE_LOCK_H_

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
    if (enabled_) mutex_.lock();
  }
  static void Release() {
    if (enabled_) mutex_.unlock();
  }

 private:
  static bool enabled_;
  static int level_;
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
