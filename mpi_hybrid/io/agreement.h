#ifndef MPI_HYBRID_IO_AGREEMENT_H_
#define MPI_HYBRID_IO_AGREEMENT_H_

#include <cstddef>
#include <span>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

// What the ranks of a collective operation on a file tell each other, so that none goes on where another could not. With the library's
// lock.
//
// `comm` belongs to the file. Where a message on it fails, a rank died, or gave up because of that; who notices leaves the operation, and others may
// wait for it. So it breaks the communicator: at all ranks what is under way on it fails, and whatever comes.
namespace weft::mpi::io {

// `error`, of a message or a collective on `comm`, for the program; a success is one.
Error Break(Comm& comm, Error error);

// Collective. All are here.
Error Meet(Comm& comm);

// Collective. A success where all succeeded; else everybody's failure: each its own, and those who had none that of the lowest rank that
// had, with its class and words.
Error Agree(Comm& comm, const Error& mine);

// Collective: `all` gets `mine` of each rank; both are plain data.
Error GatherBytes(Comm& comm, const void* mine, size_t bytes, void* all);
// Collective: `root`'s bytes.
Error TellBytes(Comm& comm, int root, void* data, size_t bytes);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_AGREEMENT_H_
