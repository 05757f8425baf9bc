#ifndef MPI_HYBRID_API_GROUP_ARGUMENTS_H_
#define MPI_HYBRID_API_GROUP_ARGUMENTS_H_

#include <mpi.h>

#include <string>
#include <vector>

#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// MPI_ERR_GROUP: not a group. `argument`: its name in the standard's binding.
Error FindGroup(MPI_Group handle, const char* argument, Group** group);

// MPI_ERR_ARG: it is negative.
Error CheckArgumentNotNegative(int value, const char* argument);

// Checks `n` ranks of a group of `size`. MPI_ERR_ARG: n is negative, or there is no array. MPI_ERR_RANK: a rank is out
// of range, or occurs twice.
Error CheckDistinctRanks(int n, const int ranks[], int size);

// The ranks of `n` triplets (first, last, stride). They must be distinct and within a group of `size`; otherwise
// MPI_ERR_ARG (as in MPICH).
Error ExpandRanges(int n, const int ranges[][3], int size, std::vector<int>* ranks);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_GROUP_ARGUMENTS_H_
