#ifndef MPI_HYBRID_RMA_EPOCH_H_
#define MPI_HYBRID_RMA_EPOCH_H_

#include <cstdint>
#include <vector>

#include "mpi_hybrid/core/error.h"

namespace weft::mpi::rma {

// The open epochs of a window at this process (MPI 4.0 section 12.5), and checks whether a call is allowed. Errors are
// MPI_ERR_RMA_SYNC. The epoch that a fence opens counts as closed until an operation is done in it, so that another
// kind of epoch may follow.
class EpochState {
 public:
  explicit EpochState(int size) : locked_(static_cast<size_t>(size)) {}

  enum class LockState : uint8_t { kNone, kLocked, kNoCheck };

  // Checks that change the state if they succeed.
  Error Fence(bool no_succeed) {
    if (exposed_ || (access_ != Kind::kFenceUsed && access_ != Kind::kFence)) [[unlikely]] WEFT_MPI_TRY(MayFence());
    access_ = no_succeed ? Kind::kNone : Kind::kFence;
    return {};
  }
  Error Start(std::vector<int> targets);
  Error Complete();
  Error Post(std::vector<int> origins);
  Error Wait();
  Error Lock(int rank, bool no_check);
  Error Unlock(int rank);
  Error LockAll(bool no_check);
  Error UnlockAll();
  // A communication call to `rank`. `with_request`: allowed in passive target epochs only.
  Error Access(int rank, bool with_request) {
    if ((access_ == Kind::kFence || access_ == Kind::kFenceUsed) && !with_request) {
      access_ = Kind::kFenceUsed;
      return {};
    }
    return AccessOutsideFence(rank, with_request);
  }

  // Checks that do not change the state.
  Error MayFlush(int rank) const;  // -1: all
  Error MayFree() const;
  Error MayTest() const;  // an exposure epoch is open

  bool in_fence() const { return access_ == Kind::kFenceUsed; }
  bool in_start() const { return access_ == Kind::kStart; }
  bool in_lock_all() const { return access_ == Kind::kLockAll; }
  bool lock_all_no_check() const { return lock_all_no_check_; }
  LockState lock_of(int rank) const { return locked_[static_cast<size_t>(rank)]; }
  const std::vector<int>& targets() const { return targets_; }
  const std::vector<int>& origins() const { return origins_; }

 private:
  enum class Kind : uint8_t { kNone, kFence, kFenceUsed, kStart, kLock, kLockAll };
  Error NothingOpen(const char* call) const;
  Error MayFence() const;
  Error AccessOutsideFence(int rank, bool with_request) const;

  Kind access_ = Kind::kNone;
  bool exposed_ = false;
  bool lock_all_no_check_ = false;
  int locks_ = 0;
  std::vector<LockState> locked_;  // by rank
  std::vector<int> targets_, origins_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_EPOCH_H_
