#ifndef MPI_HYBRID_IO_IO_ERROR_H_
#define MPI_HYBRID_IO_IO_ERROR_H_

#include <string>

#include "mpi_hybrid/core/error.h"

namespace weft::mpi::io {

// The MPI error class for the errno of a file operation (MPI 4.0 section 14.8): MPI_ERR_NO_SPACE for ENOSPC, ...
int ClassOfErrno(int error);
// "NAME: cannot WHAT: No space left on device".
Error FileError(int error, const std::string& name, const std::string& what);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_IO_ERROR_H_
