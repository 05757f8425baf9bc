#ifndef MPI_HYBRID_COLL_TAGS_H_
#define MPI_HYBRID_COLL_TAGS_H_

#include <cstdint>

#include "mpi_hybrid/comm/communicator.h"

// Tags of messages on a communicator's collective channel, which the library gives out. No two kinds can meet:
//
//   | of the program : 1 | 0 | over the local communicator : 1 | persistent : 1 | number : 27 |   of a collective
//   | of the program : 1 | the tag that the program gave : 30 |                               of a constructor
namespace weft::mpi::tags {

constexpr uint32_t kNumbers = 1u << 27;
constexpr int kPersistent = 1 << 27;
constexpr int kLocal = 1 << 28;
constexpr int kProgram = 1 << 30;

// Of the communicator's next collective, which each of its ranks takes in the same order. By the time that numbers wrap
// the first ones are long done.
inline int TakeNext(Comm& comm) { return static_cast<int>(comm.next_collective++ % kNumbers); }
// Of a persistent collective: its starts need not be in the same order everywhere.
constexpr int Persistent(int collective) { return collective | kPersistent; }
// Of the part of an intercommunicator's collective that stays within the local group.
constexpr int Local(int collective) { return collective | kLocal; }
// Of a constructor that the program gave a tag, as MPI_Comm_create_group.
constexpr int OfProgram(int tag) { return tag | kProgram; }

}  // namespace weft::mpi::tags

#endif  // MPI_HYBRID_COLL_TAGS_H_
