#ifndef MPI_HYBRID_DYNAMIC_BESIDE_H_
#define MPI_HYBRID_DYNAMIC_BESIDE_H_

#include <functional>

namespace weft::mpi {

// Calls `task`, which blocks on something other than messages (an exchange with the launcher, a socket of the program),
// in a thread of its own. The calling thread waits for it as it would for a message: progress goes on, and other
// threads of the program may enter the library. `task` runs without the library's lock and must use nothing that the
// lock guards. Call this with the lock held; it returns when `task` has returned.
void RunBeside(const std::function<void()>& task);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_BESIDE_H_
