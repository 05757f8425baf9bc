#include <algorithm>
#include <numeric>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/halving.h"

namespace weft::mpi {
namespace {

struct Pieces {
  explicit Pieces(std::span<const MPI_Aint> counts) : counts(counts), begin(counts.size() + 1) {
    std::partial_sum(counts.begin(), counts.end(), begin.begin() + 1);
  }
  MPI_Aint Count(int rank) const { return counts[static_cast<size_t>(rank)]; }
  MPI_Aint Begin(int rank) const { return begin[static_cast<size_t>(rank)]; }
  MPI_Aint Total() const { return begin.back(); }

  std::span<const MPI_Aint> counts;
  std::vector<MPI_Aint> begin;
};

void RecursiveHalving(Schedule& schedule, Place place, const Reduction& reduction, const Pieces& pieces) {
  Reduction whole = reduction;
  whole.count = pieces.Total();
  Halving halving(place, pieces.counts);
  void* full = schedule.TemporaryFor(whole.count, *reduction.type);
  halving.ReduceBlocks(schedule, whole, full);
  if (halving.takes_part()) {
    const void* own = At(full, pieces.Begin(place.rank), *reduction.type);
    schedule.Copy(own, reduction.receive, pieces.Count(place.rank), *reduction.type);
    if (halving.other() >= 0) {
      schedule.Send(At(full, pieces.Begin(halving.other()), *reduction.type), pieces.Count(halving.other()),
                    *reduction.type, halving.other());
    }
  } else {
    schedule.Receive(reduction.receive, pieces.Count(place.rank), *reduction.type, halving.other());
  }
  schedule.EndRound();
}

// The whole vector to everyone, in the order of ranks: for operations that do not commute, while it is short.
void Doubling(Schedule& schedule, Place place, const Reduction& reduction, const Pieces& pieces) {
  Reduction whole = reduction;
  whole.count = pieces.Total();
  whole.receive = schedule.TemporaryFor(whole.count, *reduction.type);
  BuildAllReduce(schedule, place, Algorithm::kDoubling, whole);
  schedule.Copy(At(whole.receive, pieces.Begin(place.rank), *reduction.type), reduction.receive,
                pieces.Count(place.rank), *reduction.type);
}

// In each round every rank sends the piece of another and combines one for itself.
void Pairwise(Schedule& schedule, Place place, const Reduction& reduction, const Pieces& pieces) {
  const Datatype& type = *reduction.type;
  const MPI_Aint count = pieces.Count(place.rank);
  const bool in_place = reduction.send == reduction.receive;
  // In place the receive buffer's start is input until the last round.
  void* result = in_place ? schedule.TemporaryFor(count, type) : reduction.receive;
  void* aside = schedule.TemporaryFor(count, type);
  const void* value = At(reduction.send, pieces.Begin(place.rank), type);
  for (int distance = 1; distance < place.size; ++distance) {
    const int source = (place.rank - distance + place.size) % place.size,
              destination = (place.rank + distance) % place.size;
    void* target = value == result ? aside : result;
    schedule.Receive(target, count, type, source);
    schedule.Send(At(reduction.send, pieces.Begin(destination), type), pieces.Count(destination), type, destination);
    schedule.EndRound();
    if (value == result)
      schedule.Reduce(aside, result, count, type, *reduction.op);
    else
      schedule.Reduce(value, result, count, type, *reduction.op);
    value = result;
  }
  schedule.Copy(value, reduction.receive, count, type);
}

// ... and keeps the pieces that arrive, to combine them in the order of ranks.
void OrderedPairwise(Schedule& schedule, Place place, const Reduction& reduction, const Pieces& pieces) {
  const Datatype& type = *reduction.type;
  const MPI_Aint count = pieces.Count(place.rank);
  void* received = schedule.TemporaryFor(place.size * count, type);
  schedule.Copy(At(reduction.send, pieces.Begin(place.rank), type), At(received, place.rank * count, type), count,
                type);
  for (int distance = 1; distance < place.size; ++distance) {
    const int source = (place.rank - distance + place.size) % place.size,
              destination = (place.rank + distance) % place.size;
    schedule.Receive(At(received, source * count, type), count, type, source);
    schedule.Send(At(reduction.send, pieces.Begin(destination), type), pieces.Count(destination), type, destination);
    schedule.EndRound();
  }
  for (int rank = 1; rank < place.size; ++rank) {
    schedule.Reduce(At(received, (rank - 1) * count, type), At(received, rank * count, type), count, type,
                    *reduction.op);
  }
  schedule.Copy(At(received, (place.size - 1) * count, type), reduction.receive, count, type);
}

}  // namespace

void BuildReduceScatter(Schedule& schedule, Place place, Algorithm algorithm, const Reduction& reduction,
                        std::span<const MPI_Aint> counts) {
  const Pieces pieces(counts);
  if (place.size == 1) return schedule.Copy(reduction.send, reduction.receive, pieces.Total(), *reduction.type);
  if (algorithm == Algorithm::kHalving) return RecursiveHalving(schedule, place, reduction, pieces);
  if (algorithm == Algorithm::kDoubling) return Doubling(schedule, place, reduction, pieces);
  if (reduction.op->commutative) return Pairwise(schedule, place, reduction, pieces);
  OrderedPairwise(schedule, place, reduction, pieces);
}

}  // namespace weft::mpi
