#include "mpi_hybrid/rma/accumulate_turn.h"

#include <sched.h>

#include <cerrno>
#include <chrono>

#include "mpi_hybrid/core/pause.h"

namespace weft::mpi::rma {
namespace {

constexpr int kSpins = 100, kYieldsPerLook = 16;  // at the clock
constexpr std::chrono::milliseconds kDoubt{10}, kLong{300};

// A wait for somebody who is busy for microseconds, unless its process lost the processor or its life.
class Patience {
 public:
  // Before each further look. True, now and then: it has lasted so long that it is time to ask whether it is there.
  bool Doubts() {
    ++tries_;
    if (tries_ < kSpins) {
      Pause();
      return false;
    }
    sched_yield();
    if (tries_ % kYieldsPerLook != 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (since_.time_since_epoch().count() == 0) since_ = looked_at_ = now;
    if (now - looked_at_ < kDoubt) return false;
    looked_at_ = now;
    return true;
  }
  // After Doubts(): whether what is waited for may have been overwritten, and is in vain.
  bool IsInVain(const AccumulateGuard& guard, bool alone) const {
    return guard.watch != nullptr && looked_at_ - since_ >= kLong && guard.watch->IsOverwritten(guard.target, alone);
  }

 private:
  int tries_ = 0;
  std::chrono::steady_clock::time_point since_{}, looked_at_{};
};

// Whether what `owner` of ControlHead::accumulating says is nonsense, or of a process that ended.
bool IsVoid(uint32_t owner, const AccumulateGuard& guard) {
  // Besides this thread only the target's service works for this rank, or the rank besides the service.
  if (owner == static_cast<uint32_t>(guard.me) + 1) return guard.target != guard.me || !guard.served;
  return owner > static_cast<uint32_t>(guard.control.ranks) || (guard.host != nullptr && guard.host->Ended(static_cast<int>(owner - 1)));
}

void Take(const AccumulateGuard& guard) {
  std::atomic<uint32_t>& owner = guard.control.head->accumulating;
  const uint32_t me = static_cast<uint32_t>(guard.me) + 1;
  Patience patience;
  while (true) {
    uint32_t found = 0;
    if (owner.compare_exchange_strong(found, me)) return;
    if (!patience.Doubts()) continue;
    if ((IsVoid(found, guard) || patience.IsInVain(guard, /*alone=*/false)) && owner.compare_exchange_strong(found, me)) return;
  }
}

// Until the one of `rank` is no longer in atomic operations. What is neither yes nor no is nonsense.
void AwaitQuiet(std::atomic<uint32_t>& in_atomics, int rank, const AccumulateGuard& guard) {
  if (in_atomics.load() == 0) [[likely]]
    return;
  Patience patience;
  for (uint32_t said = 1; said == 1; said = in_atomics.load()) {
    if (!patience.Doubts()) continue;
    if ((guard.host != nullptr && guard.host->Ended(rank)) || patience.IsInVain(guard, /*alone=*/true)) break;
  }
  if (in_atomics.load() != 0) in_atomics.store(0);
}

}  // namespace

void AtomicTurn::AwaitTurn(const AccumulateGuard& guard) {
  std::atomic<uint32_t>& owner = guard.control.head->accumulating;
  Patience patience;
  do {
    said_->store(0);
    for (uint32_t found = owner.load(); found != 0; found = owner.load()) {
      if (!patience.Doubts()) continue;
      if (IsVoid(found, guard) || patience.IsInVain(guard, /*alone=*/false)) owner.compare_exchange_strong(found, 0);
    }
    said_->store(1);
  } while (owner.load() != 0);
}

AccumulateLock::AccumulateLock(const AccumulateGuard& guard) : guard_(guard) {
  if (guard.mutex != nullptr) {
    if (pthread_mutex_lock(guard.mutex) == EOWNERDEAD) pthread_mutex_consistent(guard.mutex);
  } else if (guard.control) {
    Take(guard);
  }
}

AccumulateLock::~AccumulateLock() {
  if (guard_.mutex != nullptr) {
    pthread_mutex_unlock(guard_.mutex);
  } else if (guard_.control) {
    guard_.control.head->accumulating.store(0, std::memory_order_release);
  }
}

WholeTurn::WholeTurn(const AccumulateGuard& guard) : lock_(guard) {
  if (!guard.atomics || !guard.control) return;
  for (int rank = 0; rank < guard.control.ranks; ++rank) {
    std::atomic<uint32_t>& in_atomics = guard.control.signals[rank].in_atomics;
    if (&in_atomics != guard.in_atomics()) AwaitQuiet(in_atomics, rank, guard);
  }
  if (!guard.serves) AwaitQuiet(guard.control.head->service_in_atomics, guard.target, guard);
}

}  // namespace weft::mpi::rma
