#include "mpi_hybrid/core/lock.h"

namespace weft::mpi {

bool LibraryLock::enabled_ = false;
std::mutex LibraryLock::mutex_;

void LibraryLock::EnableThreads() { enabled_ = true; }

}  // namespace weft::mpi
