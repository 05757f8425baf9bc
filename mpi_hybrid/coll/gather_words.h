#ifndef MPI_HYBRID_COLL_GATHER_WORDS_H_
#define MPI_HYBRID_COLL_GATHER_WORDS_H_

#include <cstddef>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"

// What the processes of a communicator tell each other while they make another.
namespace weft::mpi {

// The `width` ints of every process of the local and the remote group, by rank.
Error GatherWords(Comm& comm, const int* mine, size_t width, std::vector<int>* local, std::vector<int>* remote);
// Those of all processes in one list, which is the same on both sides of an intercommunicator; where in it this process is.
Error GatherFromAll(Comm& comm, const int* mine, size_t width, std::vector<int>* all);
size_t PlaceAmongAll(const Comm& comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_GATHER_WORDS_H_
