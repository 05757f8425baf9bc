#ifndef MPI_HYBRID_COLL_ALGORITHMS_H_
#define MPI_HYBRID_COLL_ALGORITHMS_H_

#include <span>
#include <vector>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/schedule.h"
#include "mpi_hybrid/coll/tuning.h"

// The algorithms, as makers of one rank's schedule. They know only rank and size, so that they can be tried without a
// network. Arguments as in collectives.h; `algorithm` is legal for them (IsLegal of tuning.h). Buffers of one group:
// intercommunicators are composed of these in inter.cc.
namespace weft::mpi {

struct Place {
  int rank = 0;
  int size = 1;
};

constexpr bool IsPowerOfTwo(int n) { return (n & (n - 1)) == 0; }
constexpr int PowerOfTwoBelow(int n) {  // the largest that is not above n
  int power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

// So many messages each way that one rank has under way at once in the collectives in which everyone talks to everyone.
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

// A reduction of `count` elements at `send` (MPI_IN_PLACE has become the receive buffer's address) into `receive`.
struct Reduction {
  const void* send = nullptr;
  void* receive = nullptr;  // reduce: of the root
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
  const Op* op = nullptr;
};
void BuildReduce(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction, int root);
void BuildAllReduce(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction);
// `count` of the reduction is not used.
void BuildReduceScatter(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction,
                        std::span<const MPI_Aint> counts);
void BuildScan(Schedule& schedule, Place place, const Reduction& reduction, bool exclusive);

// `sources` and `destinations` in the order of the buffers, MPI_PROC_NULL for none.
void BuildNeighborAllGather(Schedule& schedule, std::span<const int> sources, std::span<const int> destinations,
                            const Uniform& send, const Varying& receive);
// `cartesian`: what goes in a dimension's negative direction arrives from its positive one, also when both neighbours
// are the same process.
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

// A partial result on its way through buffers. A reduction leaves its result in the right operand, so that the value
// moves: it starts in memory that may not be written (the send buffer) and is wherever value() says.
class Accumulator {
 public:
  // `a`: room for the whole reduction, where the result is wanted; null: anywhere.
  Accumulator(Schedule& schedule, const Reduction& reduction, void* a)
      : schedule_(schedule), reduction_(reduction), value_(reduction.send), a_(a) {}

  const void* value() const { return value_; }
  // Room for the other operand, not where the value is.
  void* Free();
  // value = value op Free(), Free() op value, or whichever is cheaper.
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
