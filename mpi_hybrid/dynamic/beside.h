#ifndef MPI_HYBRID_DYNAMIC_BESIDE_H_
#define MPI_HYBRID_DYNAMIC_BESIDE_H_

#include <functional>

namespace weft::mpi {

// Calls `task`, which blocks in something else than messages: a conversation with the launcher, a socket of the program's. It has a
// thread of its own, and this one waits for it as for a message: progress goes on, and other threads of the program come in. `task` is
// without the library's lock, and uses nothing that the lock guards. With the lock; returns when `task` has.
void RunBeside(const std::function<void()>& task);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_BESIDE_H_
