#ifndef MPI_HYBRID_COLL_GATHER_WORDS_H_
#define MPI_HYBRID_COLL_GATHER_WORDS_H_

#include <cstddef>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"

// Data that the processes of a communicator exchange while they make another one.
namespace weft::mpi {

// Gathers `width` ints from every process of the local and of the remote group, by rank.
Error GatherWords(Comm& comm, const int* mine, size_t width, std::vector<int>* local, std::vector<int>* remote);
// Gathers them from all processes into one list, which is the same on both sides of an intercommunicator. PlaceAmongAll
// is this process's index in it.
Error GatherFromAll(Comm& comm, const int* mine, size_t width, std::vector<int>* all);
size_t PlaceAmongAll(const Comm& comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_GATHER_WORDS_H_
