#ifndef MPI_HYBRID_COLL_ALGORITHMS_H_
#define MPI_HYBRID_COLL_ALGORITHMS_H_

#include <span>
#include <vector>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/schedule.h"
#include "mpi_hybrid/coll/tuning.h"

// The algorithms. Each function builds one rank's schedule. They know only rank and size, so that they can be tested
// without a network. Arguments are as in collectives.h; `algorithm` must be legal for them (IsLegal of tuning.h). They
// work within one group; inter.cc composes the collectives of intercommunicators from them.
namespace weft::mpi {

struct Place {
  int rank = 0;
  int size = 1;
};

constexpr bool IsPowerOfTwo(int n) { return (n & (n - 1)) == 0; }
constexpr int PowerOfTwoBelow(int n) {  // the largest power of two that is not above n
  int power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

// The bits of a number below `size`, a power of two, in reverse order. Numbers that are far apart become neighbours.
constexpr int ReversedBits(int number, int size) {
  int result = 0;
  for (int bit = 1; bit < size; bit *= 2) result = 2 * result + ((number & bit) != 0 ? 1 : 0);
  return result;
}

// How many messages in each direction one rank has outstanding at once in collectives in which all ranks talk to all
// ranks.
constexpr int kMostOutstanding = 32;

void BuildBarrier(Schedule& schedule, Place place);
void BuildBroadcast(Schedule& schedule, Place place, Algorithm algorithm, void* buffer, MPI_Aint count,
                    const Datatype& type, int root);

void BuildGather(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive,
                 int root);
void BuildGatherV(Schedule& schedule, Place place, const Uniform& send, const Varying& receive, int root);
void BuildScatter(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive,
                  int root);
void BuildScatterV(Schedule& schedule, Place place, const Varying& send, const Uniform& receive, int root);

void BuildAllGather(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive);
void BuildAllGatherV(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Varying& receive);

void BuildAllToAll(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive);
void BuildAllToAllV(Schedule& schedule, Place place, const Varying& send, const Varying& receive);

// A reduction of `count` elements at `send` into `receive`. For MPI_IN_PLACE, `send` is the address of the receive
// buffer.
struct Reduction {
  const void* send = nullptr;
  void* receive = nullptr;  // of Reduce: at the root only
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
  const Op* op = nullptr;
};
void BuildReduce(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction, int root);
void BuildAllReduce(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction);
// Does not use the reduction's `count`.
void BuildReduceScatter(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction,
                        std::span<const MPI_Aint> counts);
void BuildScan(Schedule& schedule, Place place, const Reduction& reduction, bool exclusive);

// `sources` and `destinations` are in the order of the buffers; MPI_PROC_NULL: no neighbour.
void BuildNeighborAllGather(Schedule& schedule, std::span<const int> sources, std::span<const int> destinations,
                            const Uniform& send, const Varying& receive);
// `cartesian`: data sent in a dimension's negative direction arrives from its positive direction, even if both
// neighbours are the same process.
void BuildNeighborAllToAll(Schedule& schedule, std::span<const int> sources, std::span<const int> destinations,
                           bool cartesian, const Varying& send, const Varying& receive);

// Intercommunicators (MPI 4.0 section 6.2.3). `local`: this process in its own group.
struct InterPlace {
  Place local;
  int remote_size = 1;
};
void BuildInterBarrier(Schedule& schedule, InterPlace place);
void BuildInterBroadcast(Schedule& schedule, InterPlace place, void* buffer, MPI_Aint count, const Datatype& type,
                         int root);
void BuildInterGather(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive, int root);
void BuildInterGatherV(Schedule& schedule, InterPlace place, const Uniform& send, const Varying& receive, int root);
void BuildInterScatter(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive, int root);
void BuildInterScatterV(Schedule& schedule, InterPlace place, const Varying& send, const Uniform& receive, int root);
void BuildInterAllGather(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive);
void BuildInterAllGatherV(Schedule& schedule, InterPlace place, const Uniform& send, const Varying& receive);
void BuildInterAllToAll(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive);
void BuildInterAllToAllV(Schedule& schedule, InterPlace place, const Varying& send, const Varying& receive);
void BuildInterReduce(Schedule& schedule, InterPlace place, const Reduction& reduction, int root);
void BuildInterAllReduce(Schedule& schedule, InterPlace place, const Reduction& reduction);
void BuildInterReduceScatter(Schedule& schedule, InterPlace place, const Reduction& reduction,
                             std::span<const MPI_Aint> counts);

// A partial result that moves between buffers. A reduction leaves its result in the right operand. The value therefore
// moves: it starts in memory that must not be written (the send buffer), and value() tells where it is.
class Accumulator {
 public:
  // `a`: space for the whole reduction, at the place where the result is wanted. Null: the result may be anywhere.
  Accumulator(Schedule& schedule, const Reduction& reduction, void* a)
      : schedule_(schedule), reduction_(reduction), value_(reduction.send), a_(a) {}

  const void* value() const { return value_; }
  // Space for the other operand, apart from the value.
  void* Free();
  // CombineWithHigher: value = value op Free(). CombineWithLower: value = Free() op value. CombineCommutative: the
  // cheaper of the two.
  void CombineWithHigher();
  void CombineWithLower();
  void CombineCommutative();
  void MoveTo(void* target);

 private:
  Schedule& schedule_;
  const Reduction& reduction_;
  const void* value_;
  void* a_;
  void* b_ = nullptr;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_ALGORITHMS_H_
