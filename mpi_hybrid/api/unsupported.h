#ifndef MPI_HYBRID_API_UNSUPPORTED_H_
#define MPI_HYBRID_API_UNSUPPORTED_H_

#include "mpi_hybrid/api/entry.h"

namespace weft::mpi {

// What an operation that Weft does not have returns: MPI_ERR_UNSUPPORTED_OPERATION, through the error handler of its object.
int UnsupportedOnComm(const char* name, MPI_Comm comm);
int UnsupportedOnWin(const char* name, MPI_Win win);
int UnsupportedOnFile(const char* name, MPI_File file);
int UnsupportedAnywhere(const char* name);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_UNSUPPORTED_H_
