#ifndef MPI_HYBRID_API_LIBRARY_H_
#define MPI_HYBRID_API_LIBRARY_H_

#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// The library runs for as long as somebody uses it: MPI_Init to MPI_Finalize, and each session. The first use joins the
// job, which all its ranks do together. With the lock.
Error UseLibrary();
// `by_all`: all ranks of the job stop at once (MPI_Finalize); then, with the last use, the library ends for good. Without
// it stays, idle, for the next use, and ends with the process.
Error StopUsingLibrary(bool by_all);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_LIBRARY_H_
