#ifndef MPI_HYBRID_SHM_PROCESSORS_H_
#define MPI_HYBRID_SHM_PROCESSORS_H_

#include <chrono>

#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::shm {

// Where the ranks of a host run, when there is a processor for each. Two that wait for each other on one processor, each
// for some microseconds before it hands the processor on, stay there: the scheduler leaves a thread that ran just now
// where it is. So one that finds itself with another moves. No thread is bound: where it may run is the same afterwards.
// With the library's lock.
class Processors {
 public:
  explicit Processors(NodeSegment& node) : node_(node) {}

  // For a wait that has taken some microseconds already: whether another rank that waits was last seen on this processor, so that it
  // is no use to spin. Then the later of the two moves to one where none was seen, now and then.
  bool Shares() {
    const int here = Note();
    return here >= 0 && FindOther(here) && !Move(here);
  }

 private:
  using Clock = std::chrono::steady_clock;

  int Note();  // says where this thread runs; -1: the kernel does not tell
  bool FindOther(int here);
  bool Move(int here);

  NodeSegment& node_;
  int said_ = -1;
  int other_ = 0;  // the place that was found
  Clock::time_point moved_{};
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_PROCESSORS_H_
