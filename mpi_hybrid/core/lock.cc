#include "mpi_hybrid/core/lock.h"

namespace weft::mpi {

bool LibraryLock::enabled_ = false;
std::recursive_mutex LibraryLock::mutex_;

void LibraryLock::EnableThreads() {
  if (enabled_) return;
  enabled_ = true;
  // The LockGuard of the entry that we are in will unlock it.
  mutex_.lock();
}

}  // namespace weft::mpi
