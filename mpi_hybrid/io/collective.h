#ifndef MPI_HYBRID_IO_COLLECTIVE_H_
#define MPI_HYBRID_IO_COLLECTIVE_H_

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/io/access.h"

namespace weft::mpi::io {

// Collective. Carries out an access: in two phases (two_phase.h) if that is faster or the hints ask for it, else each
// rank by itself. `begun`: why this rank has no access. If one rank fails, all fail. `*moved`: bytes of data. Call with
// the library's lock held; the transfer releases it.
Error RunTogether(File& file, Access& access, const Error& begun, MPI_Count* moved);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_COLLECTIVE_H_
