#ifndef MPI_HYBRID_COLL_TAGS_H_
#define MPI_HYBRID_COLL_TAGS_H_

#include <cstdint>

#include "mpi_hybrid/comm/communicator.h"

// Tags of the messages that the library sends in a communicator's collective context. Tags of different kinds never
// collide:
//
//   | of the program : 1 | 0 | over the local communicator : 1 | persistent : 1 | number : 27 |   of a collective
//   | of the program : 1 | the tag that the program gave : 30 |                               of a constructor
namespace weft::mpi::tags {

constexpr uint32_t kNumbers = 1u << 27;
constexpr int kPersistent = 1 << 27;
constexpr int kLocal = 1 << 28;
constexpr int kProgram = 1 << 30;

// For the communicator's next collective; each of its ranks takes them in the same order. When the numbers wrap around,
// the first ones have long completed.
inline int TakeNext(Comm& comm) { return static_cast<int>(comm.next_collective++ % kNumbers); }
// For a persistent collective: ranks may start them in different orders.
constexpr int Persistent(int collective) { return collective | kPersistent; }
// For the part of an intercommunicator's collective that stays within the local group.
constexpr int Local(int collective) { return collective | kLocal; }
// For a constructor with a tag of the program, such as MPI_Comm_create_group.
constexpr int OfProgram(int tag) { return tag | kProgram; }

}  // namespace weft::mpi::tags

#endif  // MPI_HYBRID_COLL_TAGS_H_
