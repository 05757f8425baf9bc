#ifndef MPI_HYBRID_P2P_RANKS_PER_HOST_H_
#define MPI_HYBRID_P2P_RANKS_PER_HOST_H_

#include <optional>
#include <string>

namespace weft::mpi {

// How many ranks are on the host of `rank`, from PMI's process mapping: "(vector,(0,2,4),...)", each triple the first node, the number of
// nodes, and the ranks on each, repeated until all ranks are placed. nullopt: not understood.
std::optional<int> RanksOnHostOf(int rank, const std::string& mapping);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_RANKS_PER_HOST_H_
