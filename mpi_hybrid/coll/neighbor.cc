#include "mpi_hybrid/coll/algorithms.h"

namespace weft::mpi {
namespace {

uint8_t* BlockOf(const Varying& varying, size_t index) {
  uint8_t* base = static_cast<uint8_t*>(const_cast<void*>(varying.buffer));
  const MPI_Aint displacement = varying.displacements[index];
  return base + (varying.types.empty() ? displacement * varying.type->extent : displacement);
}
const Datatype& TypeOf(const Varying& varying, size_t index) {
  return varying.types.empty() ? *varying.type : *varying.types[index];
}

void ReceiveFrom(Schedule& schedule, const Varying& receive, size_t index, int source) {
  if (source != MPI_PROC_NULL)
    schedule.ReceiveAtMost(BlockOf(receive, index), receive.counts[index], TypeOf(receive, index), source);
}

}  // namespace

void BuildNeighborAllGather(Schedule& schedule, std::span<const int> sources, std::span<const int> destinations,
                            const Uniform& send, const Varying& receive) {
  for (size_t i = 0; i < sources.size(); ++i) ReceiveFrom(schedule, receive, i, sources[i]);
  for (int destination : destinations) {
    if (destination != MPI_PROC_NULL) schedule.Send(send.buffer, send.count, *send.type, destination);
  }
  schedule.EndRound();
}

// Messages of one pair match in order. What goes in the negative direction of a dimension comes in from the positive side
// (MPI 4.0 section 8.6), so with neighbours that are the same process the two sides of each dimension receive in exchanged order.
void BuildNeighborAllToAll(Schedule& schedule, std::span<const int> sources, std::span<const int> destinations,
                           bool cartesian, const Varying& send, const Varying& receive) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const size_t index = cartesian ? i ^ 1 : i;
    ReceiveFrom(schedule, receive, index, sources[index]);
  }
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (destinations[i] != MPI_PROC_NULL)
      schedule.Send(BlockOf(send, i), send.counts[i], TypeOf(send, i), destinations[i]);
  }
  schedule.EndRound();
}

}  // namespace weft::mpi
