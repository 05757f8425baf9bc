#ifndef MPI_HYBRID_COLL_TUNING_H_
#define MPI_HYBRID_COLL_TUNING_H_

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi_hybrid/core/error.h"

// Chooses the algorithm of a collective, by one table (tuning.cc) over bytes and number of ranks.
namespace weft::mpi {

enum class Collective : uint8_t {
  kBroadcast,      // bytes: of the buffer
  kGather,         // bytes: of one rank's block
  kScatter,        // likewise
  kAllGather,      // bytes: of all blocks
  kAllGatherV,     // likewise
  kAllToAll,       // bytes: of one block
  kReduce,         // bytes: of the vector
  kAllReduce,      // likewise
  kReduceScatter,  // bytes: of the whole vector
};

enum class Algorithm : uint8_t {
  kAutomatic,
  kBinomial,
  kScatterDoubling,  // broadcast: binomial scatter, allgather by recursive doubling (powers of two)
  kScatterRing,      // ... allgather in a ring
  kLinear,           // each rank with each other rank at once
  kDoubling,         // recursive doubling
  kBruck,
  kRing,
  kPairwise,
  kRabenseifner,  // reduce-scatter by recursive halving, then gather or allgather
  kHalving,       // recursive halving
};

// The algorithm of the table, or the one that WEFT_MPI_COLL names if it is legal here.
Algorithm Choose(Collective collective, MPI_Aint bytes, int ranks, bool commutative = true);

// Whether WEFT_MPI_COLL names an algorithm for it. That algorithm then carries it out even on one host.
bool IsForced(Collective collective);

// Whether the algorithm works for this number of ranks and this kind of operation. It has no other restrictions.
bool IsLegal(Collective collective, Algorithm algorithm, int ranks, bool commutative);

// The algorithms of a collective, and the names that WEFT_MPI_COLL has for both. nullopt: the name is unknown.
std::vector<Algorithm> AlgorithmsOf(Collective collective);
std::string_view NameOfCollective(Collective collective);
std::string_view NameOfAlgorithm(Algorithm algorithm);
std::optional<Collective> FindCollective(std::string_view name);

// WEFT_MPI_COLL, for tests: COLLECTIVE:ALGORITHM, several separated by commas, such as "bcast:binomial,allreduce:ring".
// MPI_ERR_ARG: a name is unknown; the message lists the known names. Null or empty: only the table counts.
Error ConfigureCollectives(const char* setting);
// The error of the environment's WEFT_MPI_COLL, which is read once.
const Error& TuningError();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_TUNING_H_
