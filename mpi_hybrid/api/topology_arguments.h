#ifndef MPI_HYBRID_API_TOPOLOGY_ARGUMENTS_H_
#define MPI_HYBRID_API_TOPOLOGY_ARGUMENTS_H_

#include <mpi.h>

#include <memory>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// The topology of `comm`, of `kind` (MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH). MPI_ERR_TOPOLOGY: it has none or another.
Error FindTopology(const Comm& comm, int kind, const Topology** topology);

// A rank of `comm`. MPI_ERR_RANK.
Error CheckRank(int rank, const Comm& comm);

// Collective over `parent`: its first `size` processes, with `topology`; MPI_COMM_NULL for others.
Error MakeWithTopology(Comm& parent, int size, std::unique_ptr<Topology> topology, MPI_Comm* made);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_TOPOLOGY_ARGUMENTS_H_
