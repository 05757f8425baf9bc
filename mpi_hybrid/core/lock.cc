#include "mpi_hybrid/core/lock.h"

#include <mpi.h>

#include <algorithm>

#include "mpi_hybrid/core/counters.h"

namespace weft::mpi {

bool LibraryLock::enabled_ = false;
int LibraryLock::level_ = MPI_THREAD_SINGLE;
int LibraryLock::depth_ = 0;
std::atomic<int> LibraryLock::waiting_{0};
std::atomic<uint32_t> LibraryLock::taken_{0};
std::recursive_mutex LibraryLock::mutex_;

void LibraryLock::AcquireAwaited() {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  taken_.fetch_add(1, std::memory_order_release);
  taken_.notify_all();
}

// The thread that was seen to wait cannot have had the lock since, so its turn is still to come and changes taken_.
void LibraryLock::LetOneIn() {
  ++g_counters.lock_handovers;
  const uint32_t before = taken_.load(std::memory_order_relaxed);
  Release();
  taken_.wait(before, std::memory_order_acquire);
  Acquire();
}

void LibraryLock::EnableThreads() {
  if (enabled_) return;
  enabled_ = true;
  // The LockGuard of the entry that we are in will unlock it.
  mutex_.lock();
  depth_ = 1;
}

void LibraryLock::GrantLevel(int level) {
  level_ = std::max(level_, level);
  if (level_ == MPI_THREAD_MULTIPLE) EnableThreads();
}

}  // namespace weft::mpi
