#include "mpi_hybrid/rma/lock_manager.h"

#include <algorithm>

namespace weft::mpi::rma {

bool LockManager::Refuses(int rank) const {
  const auto same = [&](const Waiting& waiting) { return waiting.asker.rank == rank; };
  return std::find(holders_.begin(), holders_.end(), rank) != holders_.end() ||
         std::any_of(queue_.begin(), queue_.end(), same);
}

LockManager::Outcome LockManager::Acquire(Asker asker, LockWish wish) {
  if (Refuses(asker.rank)) return Outcome::kRefused;
  // A shared request waits behind an exclusive one that waits, so that no writer starves.
  if ((queue_.empty() || wish == LockWish::kOvertaking) && Try(asker.rank, wish, /*stay=*/true)) {
    holders_.push_back(asker.rank);
    return Outcome::kGranted;
  }
  queue_.push_back({asker, wish});
  return Outcome::kQueued;
}

LockManager::Outcome LockManager::TryAcquire(int rank, LockWish wish) {
  if (Refuses(rank)) return Outcome::kRefused;
  if (!queue_.empty() || !Try(rank, wish, /*stay=*/false)) return Outcome::kQueued;
  holders_.push_back(rank);
  return Outcome::kGranted;
}

bool LockManager::Release(int rank, std::vector<Asker>* granted) {
  const auto holder = std::find(holders_.begin(), holders_.end(), rank);
  if (holder == holders_.end()) return false;
  holders_.erase(holder);
  (void)lock_.Release(rank);
  Retry(granted);
  return true;
}

void LockManager::Drop(int rank, std::vector<Asker>* granted) {
  std::erase(holders_, rank);
  std::erase_if(queue_, [rank](const Waiting& waiting) { return waiting.asker.rank == rank; });
  (void)lock_.Release(rank);
  Retry(granted);
}

void LockManager::Retry(std::vector<Asker>* granted) {
  bool first = true;  // those before it have got theirs
  for (auto next = queue_.begin(); next != queue_.end();) {
    if ((first || next->wish == LockWish::kOvertaking) && Try(next->asker.rank, next->wish, /*stay=*/true)) {
      holders_.push_back(next->asker.rank);
      granted->push_back(next->asker);
      next = queue_.erase(next);
    } else {
      first = false;
      ++next;
    }
  }
}

}  // namespace weft::mpi::rma
