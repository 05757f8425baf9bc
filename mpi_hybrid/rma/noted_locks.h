#ifndef MPI_HYBRID_RMA_NOTED_LOCKS_H_
#define MPI_HYBRID_RMA_NOTED_LOCKS_H_

#include <pthread.h>

namespace weft::mpi::rma {

class RdmaWindow;

// A lock of MPI_Win_lock that a thread was given and that is not taken yet: that of `rank` at a window.
struct NotedLock {
  bool listed() const { return before != nullptr; }

  RdmaWindow* window = nullptr;
  int rank = 0;
  pthread_t thread{};  // that called MPI_Win_lock
  NotedLock *before = nullptr, *behind = nullptr;
};

// The noted locks of this process, of all of its windows, in the order of the calls. Processes that lock in one order cannot wait for one
// another in a ring, as long as the locks are taken in the order of the calls: before a thread's lock is taken, those that the same thread
// noted before it are. Guarded by the library's lock.
class NotedLocks {
 public:
  NotedLocks() { ends_.before = ends_.behind = &ends_; }
  NotedLocks(const NotedLocks&) = delete;
  NotedLocks& operator=(const NotedLocks&) = delete;

  bool empty() const { return ends_.behind == &ends_; }
  // As the last one; it is not listed.
  void Add(NotedLock& lock) {
    lock.before = ends_.before;
    lock.behind = &ends_;
    lock.before->behind = lock.behind->before = &lock;
  }
  // Harmless for one that is not listed.
  void Remove(NotedLock& lock) {
    if (!lock.listed()) return;
    lock.before->behind = lock.behind;
    lock.behind->before = lock.before;
    lock.before = lock.behind = nullptr;
  }
  // The first that the thread noted. Null: none.
  NotedLock* FirstOf(pthread_t thread) {
    for (NotedLock* lock = ends_.behind; lock != &ends_; lock = lock->behind) {
      if (pthread_equal(lock->thread, thread) != 0) return lock;
    }
    return nullptr;
  }

 private:
  NotedLock ends_;  // before the first and behind the last
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_NOTED_LOCKS_H_
