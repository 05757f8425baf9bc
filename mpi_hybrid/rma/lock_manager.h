#ifndef MPI_HYBRID_RMA_LOCK_MANAGER_H_
#define MPI_HYBRID_RMA_LOCK_MANAGER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "mpi_hybrid/rma/window_lock.h"

namespace weft::mpi::rma {

// kOvertaking: shared, without waiting behind ranks that do not have the lock yet (WindowLock).
enum class LockWish : uint8_t { kShared, kExclusive, kOvertaking };

// The ranks that request a window's lock by messages, served in the order of their requests. Not thread-safe. The lock
// itself is a WindowLock, which ranks of the target's host take without a request. Therefore a waiting request must be
// tried again when one of them may have released the lock (Retry).
class LockManager {
 public:
  // A requester: a rank of the window's group, and a token by which the owner tells it of the grant.
  struct Asker {
    int rank = 0;
    uint64_t token = 0;
  };

  LockManager() = default;
  explicit LockManager(const WindowLock& lock) : lock_(lock) {}
  const WindowLock& lock() const { return lock_; }

  // kRefused: the rank already holds the lock or waits for it
  enum class Outcome : uint8_t { kGranted, kQueued, kRefused };
  Outcome Acquire(Asker asker, LockWish wish);
  // Like Acquire, but does not wait. kQueued: the lock is not free now, and nothing has changed.
  Outcome TryAcquire(int rank, LockWish wish);
  // Releases the lock of `rank`. Ranks that get it now are added to `granted`. False: `rank` does not hold it.
  bool Release(int rank, std::vector<Asker>* granted);
  // `rank` is gone: it neither holds the lock nor waits for it any more.
  void Drop(int rank, std::vector<Asker>* granted);
  // Tries again after another process may have released the lock. Ranks that get it now are added to `granted`.
  void Retry(std::vector<Asker>* granted);

  bool held() const { return !holders_.empty(); }
  bool anyone_waits() const { return !queue_.empty(); }
  int first_waiting() const { return queue_.front().asker.rank; }

 private:
  struct Waiting {
    Asker asker;
    LockWish wish;
  };
  bool Refuses(int rank) const;
  bool Try(int rank, LockWish wish, bool stay) const {
    return wish == LockWish::kExclusive ? lock_.TryExclusive(rank, stay) : lock_.TryShared(rank, wish == LockWish::kOvertaking);
  }

  WindowLock lock_;
  std::vector<int> holders_;  // ranks
  std::deque<Waiting> queue_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_LOCK_MANAGER_H_
