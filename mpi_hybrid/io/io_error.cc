#include "mpi_hybrid/io/io_error.h"

#include <errno.h>
#include <mpi.h>

#include <system_error>

namespace weft::mpi::io {

int ClassOfErrno(int error) {
  switch (error) {
    case ENOENT:
      return MPI_ERR_NO_SUCH_FILE;
    case EACCES:
    case EPERM:
      return MPI_ERR_ACCESS;
    case EEXIST:
      return MPI_ERR_FILE_EXISTS;
    case EROFS:
      return MPI_ERR_READ_ONLY;
    case ENOSPC:
      return MPI_ERR_NO_SPACE;
    case EDQUOT:
      return MPI_ERR_QUOTA;
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return MPI_ERR_BAD_FILE;
    case ETXTBSY:
      return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
      return MPI_ERR_NO_MEM;
    default:
      return MPI_ERR_IO;
  }
}

Error FileError(int error, const std::string& name, const std::string& what) {
  return Error(ClassOfErrno(error), name + ": cannot " + what + ": " + std::generic_category().message(error));
}

}  // namespace weft::mpi::io
