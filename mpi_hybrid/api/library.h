#ifndef MPI_HYBRID_API_LIBRARY_H_
#define MPI_HYBRID_API_LIBRARY_H_

#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// The library runs as long as it is in use: from MPI_Init to MPI_Finalize, and during each session. The first use joins
// the job, which all its ranks do together. Call with the lock held.
Error UseLibrary();
// `by_all`: all ranks of the job stop at the same time (MPI_Finalize). The library then ends for good with the last
// use. Otherwise it stays idle for the next use, and ends with the process.
Error StopUsingLibrary(bool by_all);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_LIBRARY_H_
