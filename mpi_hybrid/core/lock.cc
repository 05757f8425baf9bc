#include "mpi_hybrid/core/lock.h"

#include <mpi.h>

#include <algorithm>

namespace weft::mpi {

bool LibraryLock::enabled_ = false;
int LibraryLock::level_ = MPI_THREAD_SINGLE;
std::recursive_mutex LibraryLock::mutex_;

void LibraryLock::EnableThreads() {
  if (enabled_) return;
  enabled_ = true;
  // The LockGuard of the entry that we are in will unlock it.
  mutex_.lock();
}

void LibraryLock::GrantLevel(int level) {
  level_ = std::max(level_, level);
  if (level_ == MPI_THREAD_MULTIPLE) EnableThreads();
}

}  // namespace weft::mpi
