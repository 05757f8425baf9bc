#ifndef MPI_HYBRID_CORE_LAUNCHER_WATCH_H_
#define MPI_HYBRID_CORE_LAUNCHER_WATCH_H_

#include <functional>

namespace weft::mpi {

// Ends this process, with status 1 and a line on stderr, as soon as the launcher's end of the socket `fd` is closed: a
// rank that computes for hours without an MPI call must not outlive its job. A thread sleeps in poll(). It does not
// read from the socket. When there is something to read it calls `hear`, if given, until `hear` returns false. No
// effect if `fd` is -1.
void WatchLauncher(int fd, int rank, std::function<bool()> hear = nullptr);
void StopWatchingLauncher();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_LAUNCHER_WATCH_H_
