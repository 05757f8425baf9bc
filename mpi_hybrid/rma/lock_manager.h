#ifndef MPI_HYBRID_RMA_LOCK_MANAGER_H_
#define MPI_HYBRID_RMA_LOCK_MANAGER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "mpi_hybrid/rma/window_lock.h"

namespace weft::mpi::rma {

// kOvertaking: shared, and behind nobody who does not have it yet (WindowLock).
enum class LockWish : uint8_t { kShared, kExclusive, kOvertaking };

// The ranks that ask for a window's lock by messages: first come, first served among them. Not thread safe. The lock
// itself is WindowLock, which ranks of the target's host take without asking, so that a request that waits has to be
// tried again when one of them may have given it back (Retry).
class LockManager {
 public:
  // Who asks: a rank of the window's group, and what the owner needs to tell it of the grant.
  struct Asker {
    int rank = 0;
    uint64_t token = 0;
  };

  LockManager() = default;
  explicit LockManager(const WindowLock& lock) : lock_(lock) {}
  const WindowLock& lock() const { return lock_; }

  enum class Outcome : uint8_t { kGranted, kQueued, kRefused };  // refused: it holds the lock, or waits for it, already
  Outcome Acquire(Asker asker, LockWish wish);
  // The same, but does not wait. kQueued: it is not free now, and nothing has changed.
  Outcome TryAcquire(int rank, LockWish wish);
  // Gives the lock of `rank` back; those that get it now are added to `granted`. False: it does not hold it.
  bool Release(int rank, std::vector<Asker>* granted);
  // `rank` is gone: neither holds nor waits.
  void Drop(int rank, std::vector<Asker>* granted);
  // Those that get it now, because somebody else gave it back, are added to `granted`.
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
