#include <numeric>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"

// Collectives between two groups: within each over its local communicator, between them from or to the other's rank 0
// (its leader).
namespace weft::mpi {
namespace {

void LocalBroadcast(Schedule& schedule, Place place, void* buffer, MPI_Aint count, const Datatype& type) {
  schedule.OverLocal(true);
  const Algorithm algorithm = Choose(Collective::kBroadcast, count * type.size, place.size);
  BuildBroadcast(schedule, place, algorithm, buffer, count, type, 0);
  schedule.OverLocal(false);
}

// The reduction over the local group, in room of its own at the leader (null elsewhere).
void* LocalReduce(Schedule& schedule, Place place, const Reduction& reduction) {
  Reduction local = reduction;
  local.receive = place.rank == 0 ? schedule.TemporaryFor(reduction.count, *reduction.type) : nullptr;
  schedule.OverLocal(true);
  const Algorithm algorithm =
      Choose(Collective::kReduce, reduction.count * reduction.type->size, place.size, reduction.op->commutative);
  BuildReduce(schedule, place, algorithm, local, 0);
  schedule.OverLocal(false);
  return local.receive;
}

}  // namespace

void BuildInterBarrier(Schedule& schedule, InterPlace place) {
  schedule.OverLocal(true);
  BuildBarrier(schedule, place.local);
  schedule.OverLocal(false);
  if (place.local.rank == 0) {
    schedule.ReceiveBytes(nullptr, 0, 0);
    schedule.SendBytes(nullptr, 0, 0);
    schedule.EndRound();
  }
  LocalBroadcast(schedule, place.local, nullptr, 0, *Datatype::Find(MPI_BYTE));
}

void BuildInterBroadcast(Schedule& schedule, InterPlace place, void* buffer, MPI_Aint count, const Datatype& type,
                         int root) {
  if (root == MPI_PROC_NULL) return;
  if (root == MPI_ROOT) {
    schedule.Send(buffer, count, type, 0);
    return schedule.EndRound();
  }
  if (place.local.rank == 0) {
    schedule.Receive(buffer, count, type, root);
    schedule.EndRound();
  }
  LocalBroadcast(schedule, place.local, buffer, count, type);
}

void BuildInterGather(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive, int root) {
  if (root == MPI_PROC_NULL) return;
  if (root == MPI_ROOT) {
    void* const buffer = const_cast<void*>(receive.buffer);
    for (int rank = 0; rank < place.remote_size; ++rank)
      schedule.Receive(At(buffer, rank * receive.count, *receive.type), receive.count, *receive.type, rank);
  } else {
    schedule.Send(send.buffer, send.count, *send.type, root);
  }
  schedule.EndRound();
}

void BuildInterGatherV(Schedule& schedule, InterPlace place, const Uniform& send, const Varying& receive, int root) {
  if (root == MPI_PROC_NULL) return;
  if (root != MPI_ROOT) {
    if (send.count * send.type->size != 0) schedule.Send(send.buffer, send.count, *send.type, root);
    return schedule.EndRound();
  }
  for (int rank = 0; rank < place.remote_size; ++rank) {
    const MPI_Aint count = receive.counts[static_cast<size_t>(rank)];
    if (count * receive.type->size == 0) continue;
    schedule.ReceiveAtMost(
        At(const_cast<void*>(receive.buffer), receive.displacements[static_cast<size_t>(rank)], *receive.type), count,
        *receive.type, rank);
  }
  schedule.EndRound();
}

void BuildInterScatter(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive, int root) {
  if (root == MPI_PROC_NULL) return;
  if (root == MPI_ROOT) {
    for (int rank = 0; rank < place.remote_size; ++rank)
      schedule.Send(At(send.buffer, rank * send.count, *send.type), send.count, *send.type, rank);
  } else {
    schedule.Receive(const_cast<void*>(receive.buffer), receive.count, *receive.type, root);
  }
  schedule.EndRound();
}

void BuildInterScatterV(Schedule& schedule, InterPlace place, const Varying& send, const Uniform& receive, int root) {
  if (root == MPI_PROC_NULL) return;
  if (root != MPI_ROOT) {
    if (receive.count * receive.type->size != 0)
      schedule.ReceiveAtMost(const_cast<void*>(receive.buffer), receive.count, *receive.type, root);
    return schedule.EndRound();
  }
  for (int rank = 0; rank < place.remote_size; ++rank) {
    const MPI_Aint count = send.counts[static_cast<size_t>(rank)];
    if (count * send.type->size == 0) continue;
    schedule.Send(At(send.buffer, send.displacements[static_cast<size_t>(rank)], *send.type), count, *send.type, rank);
  }
  schedule.EndRound();
}

void BuildInterAllGather(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive) {
  void* const buffer = const_cast<void*>(receive.buffer);
  if (place.local.rank == 0) {
    for (int rank = 0; rank < place.remote_size; ++rank)
      schedule.Receive(At(buffer, rank * receive.count, *receive.type), receive.count, *receive.type, rank);
  }
  schedule.Send(send.buffer, send.count, *send.type, 0);
  schedule.EndRound();
  LocalBroadcast(schedule, place.local, buffer, place.remote_size * receive.count, *receive.type);
}

void BuildInterAllGatherV(Schedule& schedule, InterPlace place, const Uniform& send, const Varying& receive) {
  const Datatype& type = *receive.type;
  const MPI_Aint bytes = std::accumulate(receive.counts.begin(), receive.counts.end(), MPI_Aint{0}) * type.size;
  uint8_t* packed = schedule.Temporary(bytes);
  MPI_Aint begin = 0;
  for (int rank = 0; rank < place.remote_size && place.local.rank == 0; ++rank) {
    const MPI_Aint length = receive.counts[static_cast<size_t>(rank)] * type.size;
    if (length != 0) schedule.ReceiveBytes(packed + begin, length, rank);
    begin += length;
  }
  if (send.count * send.type->size != 0) schedule.Send(send.buffer, send.count, *send.type, 0);
  schedule.EndRound();
  LocalBroadcast(schedule, place.local, packed, bytes, *Datatype::Find(MPI_BYTE));
  begin = 0;
  for (size_t rank = 0; rank < receive.counts.size(); ++rank) {
    schedule.Unpack(packed + begin, At(const_cast<void*>(receive.buffer), receive.displacements[rank], type),
                    receive.counts[rank], type);
    begin += receive.counts[rank] * type.size;
  }
}

void BuildInterReduce(Schedule& schedule, InterPlace place, const Reduction& reduction, int root) {
  if (root == MPI_PROC_NULL) return;
  if (root == MPI_ROOT) {
    schedule.Receive(reduction.receive, reduction.count, *reduction.type, 0);
    return schedule.EndRound();
  }
  const void* result = LocalReduce(schedule, place.local, reduction);
  if (place.local.rank == 0) schedule.Send(result, reduction.count, *reduction.type, root);
  schedule.EndRound();
}

void BuildInterAllReduce(Schedule& schedule, InterPlace place, const Reduction& reduction) {
  const void* result = LocalReduce(schedule, place.local, reduction);
  if (place.local.rank == 0) {
    schedule.Receive(reduction.receive, reduction.count, *reduction.type, 0);
    schedule.Send(result, reduction.count, *reduction.type, 0);
    schedule.EndRound();
  }
  LocalBroadcast(schedule, place.local, reduction.receive, reduction.count, *reduction.type);
}

void BuildInterReduceScatter(Schedule& schedule, InterPlace place, const Reduction& reduction,
                             std::span<const MPI_Aint> counts) {
  const Datatype& type = *reduction.type;
  Reduction whole = reduction;
  whole.count = std::accumulate(counts.begin(), counts.end(), MPI_Aint{0});
  const void* result = LocalReduce(schedule, place.local, whole);
  std::vector<MPI_Aint> displacements(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), displacements.begin(), MPI_Aint{0});
  void* theirs = nullptr;
  if (place.local.rank == 0) {
    theirs = schedule.TemporaryFor(whole.count, type);
    schedule.Receive(theirs, whole.count, type, 0);
    schedule.Send(result, whole.count, type, 0);
    schedule.EndRound();
  }
  schedule.OverLocal(true);
  BuildScatterV(schedule, place.local, Varying{theirs, counts, displacements, &type, {}},
                Uniform{reduction.receive, counts[static_cast<size_t>(place.local.rank)], &type}, 0);
  schedule.OverLocal(false);
}

}  // namespace weft::mpi
