#ifndef MPI_HYBRID_IO_COLLECTIVE_H_
#define MPI_HYBRID_IO_COLLECTIVE_H_

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/io/access.h"

namespace weft::mpi::io {

// Collective: carries out an access that was made, by two phases (two_phase.h) where that pays or the hints want it, else each rank its
// own; `begun`: why this rank has none. All fail when one does. `*moved`: bytes of data. With the library's lock, which the transfer
// lets go of.
Error RunTogether(File& file, Access& access, const Error& begun, MPI_Count* moved);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_COLLECTIVE_H_
