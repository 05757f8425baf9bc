#ifndef MPI_HYBRID_API_TOPOLOGY_ARGUMENTS_H_
#define MPI_HYBRID_API_TOPOLOGY_ARGUMENTS_H_

#include <mpi.h>

#include <memory>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// The topology of `comm`, which must be of `kind` (MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH). MPI_ERR_TOPOLOGY: it has
// none or another kind.
Error FindTopology(const Comm& comm, int kind, const Topology** topology);

// MPI_ERR_RANK: not a rank of `comm`.
Error CheckRank(int rank, const Comm& comm);

// Collective over `parent`: makes a communicator of its first `size` processes, with `topology`. The others get
// MPI_COMM_NULL.
Error MakeWithTopology(Comm& parent, int size, std::unique_ptr<Topology> topology, MPI_Comm* made);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_TOPOLOGY_ARGUMENTS_H_
