#ifndef MPI_HYBRID_IO_AGREEMENT_H_
#define MPI_HYBRID_IO_AGREEMENT_H_

#include <cstddef>
#include <span>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

// Messages by which the ranks of a collective operation on a file agree, so that none goes on if another cannot. Call
// with the library's lock held.
//
// `comm` belongs to the file. If a message on it fails, a rank died, or gave up because of a death. The rank that
// notices leaves the operation while others may wait for it. Therefore it revokes the communicator: every pending and
// every later operation on it fails at all ranks.
namespace weft::mpi::io {

// `error` is the outcome of a message or a collective on `comm`. Revokes `comm` unless it is a success. Returns the
// error for the program.
Error Break(Comm& comm, Error error);

// Collective. Returns when all ranks have called it.
Error Meet(Comm& comm);

// Collective. Success if all ranks succeeded. Otherwise it fails at all ranks: a rank that failed returns its own
// error, the others return the class and the message of the lowest rank that failed.
Error Agree(Comm& comm, const Error& mine);

// Collective. `all` receives the bytes at `mine` of each rank. Plain data only.
Error GatherBytes(Comm& comm, const void* mine, size_t bytes, void* all);
// Collective. Sends the root's bytes to all ranks.
Error TellBytes(Comm& comm, int root, void* data, size_t bytes);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_AGREEMENT_H_
