#ifndef MPI_HYBRID_COMM_TOPOLOGY_H_
#define MPI_HYBRID_COMM_TOPOLOGY_H_

#include <mpi.h>

#include <vector>

namespace weft::mpi {

// A process topology (MPI 4.0 chapter 8); which fields count depends on `kind`.
struct Topology {
  int kind = MPI_UNDEFINED;  // MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH

  // MPI_CART: row-major, all ranks of the communicator.
  std::vector<int> dims, periods, coordinates;  // coordinates: of this process

  // MPI_GRAPH: the whole graph as given.
  std::vector<int> index, edges;

  // MPI_DIST_GRAPH: of this process.
  std::vector<int> sources, source_weights, destinations, destination_weights;
  bool weighted = false;

  // Neighbours of this process in the order of neighbourhood collectives (MPI 4.0 section 8.6); MPI_PROC_NULL at the border of a
  // cartesian grid that is not periodic.
  std::vector<int> InNeighbours(int rank) const;
  std::vector<int> OutNeighbours(int rank) const;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COMM_TOPOLOGY_H_
