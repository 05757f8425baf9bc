#ifndef MPI_HYBRID_RMA_LOCK_MANAGER_H_
#define MPI_HYBRID_RMA_LOCK_MANAGER_H_

#include <cstdint>
#include <deque>
#include <vector>

namespace weft::mpi::rma {

// The lock of one window at one target (MPI 4.0 section 12.5.3): shared or exclusive, first come first served. Not thread safe.
class LockManager {
 public:
  // Who asks: a rank of the window's group, and what the owner needs to tell it of the grant.
  struct Asker {
    int rank = 0;
    uint64_t token = 0;
  };

  enum class Outcome : uint8_t { kGranted, kQueued, kRefused };  // refused: it holds the lock, or waits for it, already
  Outcome Acquire(Asker asker, bool exclusive);
  // Whether `rank`, which has no part in the lock, would be granted it now. kQueued: not now.
  Outcome Ask(int rank, bool exclusive) const;
  // Gives the lock of `rank` back; those that get it now are added to `granted`. False: it does not hold it.
  bool Release(int rank, std::vector<Asker>* granted);
  // `rank` is gone: neither holds nor waits.
  void Drop(int rank, std::vector<Asker>* granted);

  bool held() const { return !holders_.empty(); }

 private:
  struct Waiting {
    Asker asker;
    bool exclusive;
  };
  void Grant(std::vector<Asker>* granted);

  bool exclusive_ = false;    // how holders_ hold it
  std::vector<int> holders_;  // ranks
  std::deque<Waiting> queue_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_LOCK_MANAGER_H_
