#include "mpi_hybrid/rma/epoch.h"

#include <mpi.h>

#include <algorithm>
#include <string>

namespace weft::mpi::rma {
namespace {

Error Misplaced(std::string message) { return Error(MPI_ERR_RMA_SYNC, std::move(message)); }

}  // namespace

Error EpochState::NothingOpen(const char* call) const {
  const std::string suffix = std::string("; ") + call + " has to wait until it is closed";
  switch (access_) {
    case Kind::kNone:
    case Kind::kFence:
      return {};
    case Kind::kFenceUsed:
      return Misplaced("operations of a fence epoch are not completed by another fence" + suffix);
    case Kind::kStart:
      return Misplaced("the access epoch of MPI_Win_start is open" + suffix);
    case Kind::kLock:
      return Misplaced(std::to_string(locks_) + " targets are locked by MPI_Win_lock" + suffix);
    case Kind::kLockAll:
      return Misplaced("the epoch of MPI_Win_lock_all is open" + suffix);
  }
  return {};
}

Error EpochState::MayFence() const {
  if (access_ != Kind::kFenceUsed) WEFT_MPI_TRY(NothingOpen("MPI_Win_fence"));
  if (exposed_) return Misplaced("the exposure epoch of MPI_Win_post is open; MPI_Win_fence has to wait for MPI_Win_wait");
  return {};
}

Error EpochState::Start(std::vector<int> targets) {
  WEFT_MPI_TRY(NothingOpen("MPI_Win_start"));
  access_ = Kind::kStart;
  targets_ = std::move(targets);
  return {};
}

Error EpochState::Complete() {
  if (access_ != Kind::kStart) return Misplaced("MPI_Win_complete without MPI_Win_start");
  access_ = Kind::kNone;
  return {};
}

Error EpochState::Post(std::vector<int> origins) {
  if (exposed_) return Misplaced("MPI_Win_post while the exposure epoch of another one is open");
  if (access_ == Kind::kFenceUsed) WEFT_MPI_TRY(NothingOpen("MPI_Win_post"));
  exposed_ = true;
  origins_ = std::move(origins);
  return {};
}

Error EpochState::MayTest() const { return exposed_ ? Error() : Misplaced("MPI_Win_wait or MPI_Win_test without MPI_Win_post"); }

Error EpochState::Wait() {
  WEFT_MPI_TRY(MayTest());
  exposed_ = false;
  return {};
}

Error EpochState::Lock(int rank, bool no_check) {
  LockState& lock = locked_[static_cast<size_t>(rank)];
  if (lock != LockState::kNone) return Misplaced("rank " + std::to_string(rank) + " is locked already");
  if (access_ != Kind::kLock) WEFT_MPI_TRY(NothingOpen("MPI_Win_lock"));
  access_ = Kind::kLock;
  lock = no_check ? LockState::kNoCheck : LockState::kLocked;
  ++locks_;
  return {};
}

Error EpochState::Unlock(int rank) {
  LockState& lock = locked_[static_cast<size_t>(rank)];
  if (lock == LockState::kNone) return Misplaced("rank " + std::to_string(rank) + " is not locked");
  lock = LockState::kNone;
  if (--locks_ == 0) access_ = Kind::kNone;
  return {};
}

Error EpochState::LockAll(bool no_check) {
  WEFT_MPI_TRY(NothingOpen("MPI_Win_lock_all"));
  access_ = Kind::kLockAll;
  lock_all_no_check_ = no_check;
  return {};
}

Error EpochState::UnlockAll() {
  if (access_ != Kind::kLockAll) return Misplaced("MPI_Win_unlock_all without MPI_Win_lock_all");
  access_ = Kind::kNone;
  return {};
}

Error EpochState::AccessOutsideFence(int rank, bool with_request) const {
  switch (access_) {
    case Kind::kNone:
      return Misplaced("no epoch is open that allows access to rank " + std::to_string(rank));
    case Kind::kFence:
    case Kind::kFenceUsed:
      break;
    case Kind::kStart:
      if (with_request) break;
      if (std::find(targets_.begin(), targets_.end(), rank) != targets_.end()) return {};
      return Misplaced("rank " + std::to_string(rank) + " is not in the group of MPI_Win_start");
    case Kind::kLock:
      if (lock_of(rank) != LockState::kNone) return {};
      return Misplaced("rank " + std::to_string(rank) + " is not locked, others are");
    case Kind::kLockAll:
      return {};
  }
  return Misplaced("operations that return a request are for epochs of MPI_Win_lock and MPI_Win_lock_all");
}

Error EpochState::MayFlush(int rank) const {
  if (access_ == Kind::kLockAll) return {};
  if (access_ != Kind::kLock) return Misplaced("no epoch of MPI_Win_lock or MPI_Win_lock_all is open");
  if (rank >= 0 && lock_of(rank) == LockState::kNone) return Misplaced("rank " + std::to_string(rank) + " is not locked");
  return {};
}

Error EpochState::MayFree() const {
  WEFT_MPI_TRY(NothingOpen("MPI_Win_free"));
  if (exposed_) return Misplaced("the exposure epoch of MPI_Win_post is open; MPI_Win_free has to wait for MPI_Win_wait");
  return {};
}

}  // namespace weft::mpi::rma
