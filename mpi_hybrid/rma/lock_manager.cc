#include "mpi_hybrid/rma/lock_manager.h"

#include <algorithm>

namespace weft::mpi::rma {

LockManager::Outcome LockManager::Ask(int rank, bool exclusive) const {
  const auto same = [&](const Waiting& waiting) { return waiting.asker.rank == rank; };
  if (std::find(holders_.begin(), holders_.end(), rank) != holders_.end()) return Outcome::kRefused;
  if (std::any_of(queue_.begin(), queue_.end(), same)) return Outcome::kRefused;
  // A shared request waits behind an exclusive one that waits, so that no writer starves.
  const bool free = holders_.empty() || (!exclusive && !exclusive_);
  return free && queue_.empty() ? Outcome::kGranted : Outcome::kQueued;
}

LockManager::Outcome LockManager::Acquire(Asker asker, bool exclusive) {
  const Outcome outcome = Ask(asker.rank, exclusive);
  if (outcome == Outcome::kQueued) queue_.push_back({asker, exclusive});
  if (outcome == Outcome::kGranted) {
    holders_.push_back(asker.rank);
    exclusive_ = exclusive;
  }
  return outcome;
}

bool LockManager::Release(int rank, std::vector<Asker>* granted) {
  const auto holder = std::find(holders_.begin(), holders_.end(), rank);
  if (holder == holders_.end()) return false;
  holders_.erase(holder);
  Grant(granted);
  return true;
}

void LockManager::Drop(int rank, std::vector<Asker>* granted) {
  std::erase(holders_, rank);
  std::erase_if(queue_, [rank](const Waiting& waiting) { return waiting.asker.rank == rank; });
  Grant(granted);
}

void LockManager::Grant(std::vector<Asker>* granted) {
  while (!queue_.empty()) {
    const Waiting& next = queue_.front();
    if (!holders_.empty() && (next.exclusive || exclusive_)) return;
    holders_.push_back(next.asker.rank);
    exclusive_ = next.exclusive;
    granted->push_back(next.asker);
    queue_.pop_front();
  }
}

}  // namespace weft::mpi::rma
