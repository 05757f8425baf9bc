#include "mpi_hybrid/comm/topology.h"

#include <mpi.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/group_arguments.h"
#include "mpi_hybrid/api/topology_arguments.h"
#include "mpi_hybrid/coll/make_comm.h"

// Cartesian topologies and what all kinds have in common (MPI 4.0 chapter 8); graphs are in graph_topology.cc. Ranks
// are not reordered: nothing is known of the network below.
namespace weft::mpi {
namespace {

const char* TopologyKindName(int kind) {
  switch (kind) {
    case MPI_CART:
      return "a cartesian topology";
    case MPI_GRAPH:
      return "a graph topology";
    case MPI_DIST_GRAPH:
      return "a distributed graph topology";
    default:
      return "a topology";
  }
}

std::string ElementName(const char* array, int index) { return std::string(array) + "[" + std::to_string(index) + "]"; }

// Sizes of a grid for at most `available` processes; `nodes`: how many it has. `too_large`: the class if it has more
// (MPICH's differ).
Error CheckGrid(int ndims, const int dims[], const int periods[], int available, int too_large, int* nodes) {
  WEFT_MPI_TRY(CheckArgumentNotNegative(ndims, "ndims"));
  if (ndims > 0) WEFT_MPI_TRY(CheckNotNull(dims, "dims"));
  if (ndims > 0) WEFT_MPI_TRY(CheckNotNull(periods, "periods"));
  int64_t product = 1;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] <= 0) return Error(MPI_ERR_DIMS, ElementName("dims", i) + " is not positive: " + std::to_string(dims[i]));
    product = std::min<int64_t>(product * dims[i], INT32_MAX);
  }
  if (product > available) {
    return Error(too_large, "the grid of dims has " + std::to_string(product) + " processes, the communicator " +
                                std::to_string(available));
  }
  *nodes = static_cast<int>(product);
  return {};
}

std::unique_ptr<Topology> MakeGrid(std::vector<int> dims, std::vector<int> periods) {
  auto grid = std::make_unique<Topology>();
  grid->kind = MPI_CART;
  grid->dims = std::move(dims);
  grid->periods = std::move(periods);
  return grid;
}

Error CheckDimensionRoom(int room, size_t needed, const char* argument) {
  if (room >= 0 && static_cast<size_t>(room) >= needed) return {};
  return Error(MPI_ERR_ARG, std::string(argument) + " " + std::to_string(room) +
                                " is less than the number of dimensions, " + std::to_string(needed));
}

}  // namespace

Error FindTopology(const Comm& comm, int kind, const Topology** topology) {
  *topology = comm.topology.get();
  if (*topology != nullptr && (*topology)->kind == kind) [[likely]]
    return {};
  return Error(MPI_ERR_TOPOLOGY, std::string("comm has ") +
                                     (*topology == nullptr ? "no topology" : TopologyKindName((*topology)->kind)) + ", where " +
                                     TopologyKindName(kind) + " is needed");
}

Error CheckRank(int rank, const Comm& comm) {
  if (rank >= 0 && rank < comm.size()) [[likely]]
    return {};
  return Error(MPI_ERR_RANK, "rank " + std::to_string(rank) + " is not a rank of the communicator (0 to " +
                                 std::to_string(comm.size() - 1) + ")");
}

Error MakeWithTopology(Comm& parent, int size, std::unique_ptr<Topology> topology, MPI_Comm* made) {
  const Ref<Comm> alive(&parent);
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  Ref<Comm> comm;
  WEFT_MPI_TRY(CreateFromGroup(parent, Include(*parent.local, ranks), &comm));
  if (!comm) return {};
  if (topology->kind == MPI_CART) topology->coordinates = topology->CoordinatesOf(comm->rank);
  comm->topology = std::move(topology);
  *made = Comm::Give(comm);
  return {};
}

}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Topo_test(MPI_Comm comm, int* status) {
  return OnComm("MPI_Topo_test", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(status, "status"));
    *status = c.topology == nullptr ? MPI_UNDEFINED : c.topology->kind;
    return {};
  });
}
WEFT_MPI_ALIAS(Topo_test)

int PMPI_Dims_create(int nnodes, int ndims, int dims[]) {
  return Anywhere("MPI_Dims_create", [&]() -> Error {
    if (nnodes <= 0) return Error(MPI_ERR_ARG, "nnodes " + std::to_string(nnodes) + " is not positive");
    WEFT_MPI_TRY(CheckArgumentNotNegative(ndims, "ndims"));
    if (ndims == 0) return {};
    WEFT_MPI_TRY(CheckNotNull(dims, "dims"));
    return ChooseDims(nnodes, std::span(dims, static_cast<size_t>(ndims)));
  });
}
WEFT_MPI_ALIAS(Dims_create)

int PMPI_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int /*reorder*/,
                     MPI_Comm* comm_cart) {
  return OnComm("MPI_Cart_create", comm_old, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    WEFT_MPI_TRY(CheckNotNull(comm_cart, "comm_cart"));
    *comm_cart = MPI_COMM_NULL;
    int nodes;
    WEFT_MPI_TRY(CheckGrid(ndims, dims, periods, c.size(), MPI_ERR_ARG, &nodes));
    std::vector<int> wraps(periods, periods + ndims);
    for (int& wrap : wraps) wrap = wrap != 0 ? 1 : 0;
    return MakeWithTopology(c, nodes, MakeGrid(std::vector<int>(dims, dims + ndims), std::move(wraps)), comm_cart);
  });
}
WEFT_MPI_ALIAS(Cart_create)

int PMPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank) {
  return OnComm("MPI_Cart_map", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    WEFT_MPI_TRY(CheckNotNull(newrank, "newrank"));
    int nodes;
    WEFT_MPI_TRY(CheckGrid(ndims, dims, periods, c.size(), MPI_ERR_DIMS, &nodes));
    *newrank = c.rank < nodes ? c.rank : MPI_UNDEFINED;
    return {};
  });
}
WEFT_MPI_ALIAS(Cart_map)

int PMPI_Cartdim_get(MPI_Comm comm, int* ndims) {
  return OnComm("MPI_Cartdim_get", comm, [&](Comm& c) -> Error {
    const Topology* grid;
    WEFT_MPI_TRY(FindTopology(c, MPI_CART, &grid));
    WEFT_MPI_TRY(CheckNotNull(ndims, "ndims"));
    *ndims = static_cast<int>(grid->dims.size());
    return {};
  });
}
WEFT_MPI_ALIAS(Cartdim_get)

int PMPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]) {
  return OnComm("MPI_Cart_get", comm, [&](Comm& c) -> Error {
    const Topology* grid;
    WEFT_MPI_TRY(FindTopology(c, MPI_CART, &grid));
    WEFT_MPI_TRY(CheckArgumentNotNegative(maxdims, "maxdims"));
    const size_t count = std::min(grid->dims.size(), static_cast<size_t>(maxdims));
    if (count == 0) return {};
    WEFT_MPI_TRY(CheckNotNull(dims, "dims"));
    WEFT_MPI_TRY(CheckNotNull(periods, "periods"));
    WEFT_MPI_TRY(CheckNotNull(coords, "coords"));
    std::copy_n(grid->dims.begin(), count, dims);
    std::copy_n(grid->periods.begin(), count, periods);
    std::copy_n(grid->coordinates.begin(), count, coords);
    return {};
  });
}
WEFT_MPI_ALIAS(Cart_get)

int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int* rank) {
  return OnComm("MPI_Cart_rank", comm, [&](Comm& c) -> Error {
    const Topology* grid;
    WEFT_MPI_TRY(FindTopology(c, MPI_CART, &grid));
    WEFT_MPI_TRY(CheckNotNull(rank, "rank"));
    if (!grid->dims.empty()) WEFT_MPI_TRY(CheckNotNull(coords, "coords"));
    for (size_t i = 0; i < grid->dims.size(); ++i) {
      if (grid->periods[i] || (coords[i] >= 0 && coords[i] < grid->dims[i])) continue;
      return Error(MPI_ERR_ARG, ElementName("coords", static_cast<int>(i)) + ", " + std::to_string(coords[i]) +
                                    ", is outside of 0 to " + std::to_string(grid->dims[i] - 1) +
                                    ", and the dimension is not periodic");
    }
    *rank = grid->RankOf(std::span(coords, grid->dims.size()));
    return {};
  });
}
WEFT_MPI_ALIAS(Cart_rank)

int PMPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]) {
  return OnComm("MPI_Cart_coords", comm, [&](Comm& c) -> Error {
    const Topology* grid;
    WEFT_MPI_TRY(FindTopology(c, MPI_CART, &grid));
    WEFT_MPI_TRY(CheckRank(rank, c));
    WEFT_MPI_TRY(CheckDimensionRoom(maxdims, grid->dims.size(), "maxdims"));
    if (grid->dims.empty()) return {};
    WEFT_MPI_TRY(CheckNotNull(coords, "coords"));
    const std::vector<int> at = grid->CoordinatesOf(rank);
    std::copy(at.begin(), at.end(), coords);
    return {};
  });
}
WEFT_MPI_ALIAS(Cart_coords)

int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest) {
  return OnComm("MPI_Cart_shift", comm, [&](Comm& c) -> Error {
    const Topology* grid;
    WEFT_MPI_TRY(FindTopology(c, MPI_CART, &grid));
    WEFT_MPI_TRY(CheckNotNull(rank_source, "rank_source"));
    WEFT_MPI_TRY(CheckNotNull(rank_dest, "rank_dest"));
    if (grid->dims.empty())
      return Error(MPI_ERR_TOPOLOGY, "comm is a grid without dimensions, in which nothing can be shifted");
    if (direction < 0 || static_cast<size_t>(direction) >= grid->dims.size()) {
      return Error(MPI_ERR_ARG, "direction " + std::to_string(direction) +
                                    " is not a dimension of the grid, which has " + std::to_string(grid->dims.size()));
    }
    const auto dimension = static_cast<size_t>(direction);
    *rank_source = grid->Shifted(c.rank, dimension, -int64_t{disp});
    *rank_dest = grid->Shifted(c.rank, dimension, disp);
    return {};
  });
}
WEFT_MPI_ALIAS(Cart_shift)

int PMPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) {
  return OnComm("MPI_Cart_sub", comm, [&](Comm& c) -> Error {
    const Topology* grid;
    WEFT_MPI_TRY(FindTopology(c, MPI_CART, &grid));
    WEFT_MPI_TRY(CheckNotNull(newcomm, "newcomm"));
    if (!grid->dims.empty()) WEFT_MPI_TRY(CheckNotNull(remain_dims, "remain_dims"));
    *newcomm = MPI_COMM_NULL;
    // The coordinates of the dimensions that go tell the parts apart; within a part ranks stay in order.
    std::vector<int> dims, periods;
    int part = 0;
    for (size_t i = 0; i < grid->dims.size(); ++i) {
      if (remain_dims[i]) {
        dims.push_back(grid->dims[i]);
        periods.push_back(grid->periods[i]);
      } else {
        part = part * grid->dims[i] + grid->coordinates[i];
      }
    }
    const Ref<Comm> alive(&c);
    Ref<Comm> made;
    WEFT_MPI_TRY(Split(c, part, c.rank, &made));
    made->topology = MakeGrid(std::move(dims), std::move(periods));
    made->topology->coordinates = made->topology->CoordinatesOf(made->rank);
    *newcomm = Comm::Give(made);
    return {};
  });
}
WEFT_MPI_ALIAS(Cart_sub)
