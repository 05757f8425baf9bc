#ifndef MPI_HYBRID_CORE_LAUNCHER_WATCH_H_
#define MPI_HYBRID_CORE_LAUNCHER_WATCH_H_

#include <functional>

namespace weft::mpi {

// Ends this process, with status 1 and a line to stderr, as soon as the launcher's end of the socket `fd` is closed: a rank that
// computes for hours without an MPI call must not outlive its job. A thread that sleeps in poll(); it reads nothing, but calls `hear`, where
// there is one, whenever there is something to read, until that says false. No effect for fd -1.
void WatchLauncher(int fd, int rank, std::function<bool()> hear = nullptr);
void StopWatchingLauncher();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_LAUNCHER_WATCH_H_
