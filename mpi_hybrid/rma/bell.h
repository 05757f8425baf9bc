#ifndef MPI_HYBRID_RMA_BELL_H_
#define MPI_HYBRID_RMA_BELL_H_

#include <cstdint>

namespace weft::mpi::rma {

// Wakes a process of this host that sleeps in MPI: a byte in a pipe that it watches. Losing one costs time and nothing
// else, for nobody sleeps long on it (host_wait.h), so that being out of descriptors is no error.
//
// How others name a process's bell: an end of a pipe that they open in /proc. The inode tells it from whatever may have
// the numbers later.
struct BellName {
  int32_t pid = 0, fd = -1;
  uint64_t inode = 0;
};

// This process's: made on first use. fd -1: it has none.
const BellName& OwnBell();
// What becomes readable when it rings; -1: none.
int OwnBellDescriptor();
// Takes what rang.
void Silence();

// From any thread.
void Ring(const BellName& bell);
// Closes what others' bells took, when no window is left.
void ForgetBells();

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_BELL_H_
