#ifndef MPI_HYBRID_CORE_LAUNCHER_WATCH_H_
#define MPI_HYBRID_CORE_LAUNCHER_WATCH_H_

namespace weft::mpi {

// Ends this process, with status 1 and a line to stderr, as soon as the launcher's end of the socket `fd` is closed: a rank that
// computes for hours without an MPI call must not outlive its job. A thread that sleeps in poll(); it reads nothing. No effect
// for fd -1.
void WatchLauncher(int fd, int rank);
void StopWatchingLauncher();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_LAUNCHER_WATCH_H_
