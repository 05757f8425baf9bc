#ifndef MPI_HYBRID_COMM_TOPOLOGY_H_
#define MPI_HYBRID_COMM_TOPOLOGY_H_

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// A process topology (MPI 4.0 chapter 8). `kind` determines which fields are used.
struct Topology {
  int kind = MPI_UNDEFINED;  // MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH

  // MPI_CART: row-major, all ranks of the communicator.
  std::vector<int> dims, periods, coordinates;  // coordinates: of this process

  // MPI_GRAPH: the whole graph as given.
  std::vector<int> index, edges;

  // MPI_DIST_GRAPH: of this process.
  std::vector<int> sources, source_weights, destinations, destination_weights;
  bool weighted = false;

  // The neighbours of this process in the order of neighbourhood collectives (MPI 4.0 section 8.6). At the border of a
  // cartesian grid that is not periodic the neighbour is MPI_PROC_NULL.
  std::vector<int> InNeighbours(int rank) const;
  std::vector<int> OutNeighbours(int rank) const;

  // MPI_CART only. Coordinates out of range wrap around in periodic dimensions. MPI_PROC_NULL: a coordinate of another
  // dimension is out of range.
  int RankOf(std::span<const int> at) const;
  std::vector<int> CoordinatesOf(int rank) const;
  // The rank `displacement` steps away in `dimension`, or MPI_PROC_NULL.
  int Shifted(int rank, size_t dimension, int64_t displacement) const;

  // MPI_GRAPH only. The neighbours of any rank.
  std::span<const int> GraphNeighbours(int rank) const;
};

// MPI_Dims_create: fills in the dimensions that are 0, in descending order and as close to each other as the divisors
// of `nodes` allow. MPI_ERR_DIMS: a dimension is negative, or `nodes` is not a multiple of the product of the given
// dimensions.
Error ChooseDims(int nodes, std::span<int> dims);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COMM_TOPOLOGY_H_
