#ifndef MPI_HYBRID_RMA_NOTED_LOCKS_H_
#define MPI_HYBRID_RMA_NOTED_LOCKS_H_

#include <pthread.h>

namespace weft::mpi::rma {

class RdmaWindow;

// A lock of MPI_Win_lock that was granted to a thread but has not been taken yet: the lock of `rank` at a window.
struct NotedLock {
  bool listed() const { return before != nullptr; }

  RdmaWindow* window = nullptr;
  int rank = 0;
  pthread_t thread{};  // the thread that called MPI_Win_lock
  NotedLock *before = nullptr, *behind = nullptr;
};

// The noted locks of this process, in all of its windows, in the order of the calls. Processes that lock in one order
// cannot wait for each other in a cycle, provided that each takes the locks in the order of its calls. Therefore,
// before a thread's lock is taken, the locks that the same thread noted earlier are taken. Guarded by the library's
// lock.
class NotedLocks {
 public:
  NotedLocks() { ends_.before = ends_.behind = &ends_; }
  NotedLocks(const NotedLocks&) = delete;
  NotedLocks& operator=(const NotedLocks&) = delete;

  bool empty() const { return ends_.behind == &ends_; }
  // Appends a lock that is not listed.
  void Add(NotedLock& lock) {
    lock.before = ends_.before;
    lock.behind = &ends_;
    lock.before->behind = lock.behind->before = &lock;
  }
  // No effect on a lock that is not listed.
  void Remove(NotedLock& lock) {
    if (!lock.listed()) return;
    lock.before->behind = lock.behind;
    lock.behind->before = lock.before;
    lock.before = lock.behind = nullptr;
  }
  // The first lock that the thread noted. Null: none.
  NotedLock* FirstOf(pthread_t thread) {
    for (NotedLock* lock = ends_.behind; lock != &ends_; lock = lock->behind) {
      if (pthread_equal(lock->thread, thread) != 0) return lock;
    }
    return nullptr;
  }

 private:
  NotedLock ends_;  // the list's end: before the first and behind the last
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_NOTED_LOCKS_H_
