#ifndef MPI_HYBRID_HOST_PROCESSORS_H_
#define MPI_HYBRID_HOST_PROCESSORS_H_

#include <chrono>

#include "mpi_hybrid/host/segment.h"

namespace weft::mpi::host {

// Keeps the ranks of a host on different processors if there is a processor for each. Two ranks that wait for each
// other on one processor, each of which spins for some microseconds before it yields, stay there: the scheduler leaves
// a thread that ran recently where it is. Therefore a rank that finds itself on the processor of another one moves. No
// thread is bound: the set of allowed processors is the same afterwards. Call with the library's lock held.
class Processors {
 public:
  explicit Processors(Segment& segment) : segment_(segment) {}

  // For a wait that has already taken some microseconds. True: another waiting rank was last seen on this processor,
  // and this rank has not moved away; spinning is useless then. From time to time, the rank with the higher place moves
  // to a processor where no rank was seen.
  bool Shares() {
    const int here = Note();
    return here >= 0 && FindOther(here) && !Move(here);
  }

 private:
  using Clock = std::chrono::steady_clock;

  int Note();  // records the processor of this thread and returns it; -1: the kernel does not tell
  bool FindOther(int here);
  bool Move(int here);

  Segment& segment_;
  int said_ = -1;
  int other_ = 0;  // the place that was found
  Clock::time_point moved_{};
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_PROCESSORS_H_
