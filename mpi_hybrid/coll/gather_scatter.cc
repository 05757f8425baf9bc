#include <algorithm>

#include "mpi_hybrid/coll/algorithms.h"

namespace weft::mpi {
namespace {

int RankAt(Place place, int root, int relative) { return (relative + root) % place.size; }

// Ranks root+relative ... of `count` ranks as at most two runs without wrapping.
struct Runs {
  int first, first_count, second_count;  // the second starts at rank 0
};
Runs RunsOf(Place place, int root, int relative, int count) {
  const int first = RankAt(place, root, relative);
  const int before_wrap = std::min(count, place.size - first);
  return {first, before_wrap, count - before_wrap};
}

void GatherBinomialAtRoot(Schedule& schedule, Place place, const Uniform& send, const Uniform& receive, int root) {
  void* const buffer = const_cast<void*>(receive.buffer);
  const MPI_Aint block = receive.count * receive.type->size;
  struct Wrapped {
    Runs runs;
    const uint8_t* packed;
  };
  Wrapped wrapped{};
  for (int mask = 1; mask < place.size; mask *= 2) {
    const int subtree = std::min(mask, place.size - mask);
    const Runs runs = RunsOf(place, root, mask, subtree);
    if (runs.second_count == 0) {
      schedule.Receive(At(buffer, runs.first * receive.count, *receive.type), subtree * receive.count, *receive.type,
                       RankAt(place, root, mask));
    } else {  // of one child at most
      uint8_t* packed = schedule.Temporary(subtree * block);
      schedule.ReceiveBytes(packed, subtree * block, RankAt(place, root, mask));
      wrapped = {runs, packed};
    }
  }
  if (send.buffer != MPI_IN_PLACE) {
    schedule.Copy(send.buffer, send.count, *send.type, At(buffer, root * receive.count, *receive.type), receive.count,
                  *receive.type);
  }
  schedule.EndRound();
  if (wrapped.packed != nullptr) {
    const Runs& runs = wrapped.runs;
    schedule.Unpack(wrapped.packed, At(buffer, runs.first * receive.count, *receive.type),
                    runs.first_count * receive.count, *receive.type);
    schedule.Unpack(wrapped.packed + runs.first_count * block, buffer, runs.second_count * receive.count,
                    *receive.type);
  }
}

void GatherBinomialElsewhere(Schedule& schedule, Place place, const Uniform& send, int root) {
  const int relative = (place.rank - root + place.size) % place.size;
  const MPI_Aint block = send.count * send.type->size;
  int mask = 1;
  while ((relative & mask) == 0) mask *= 2;
  const int parent = RankAt(place, root, relative - mask);
  const int subtree = std::min(mask, place.size - relative);
  if (subtree == 1) {
    schedule.Send(send.buffer, send.count, *send.type, parent);
    schedule.EndRound();
    return;
  }
  uint8_t* packed = schedule.Temporary(subtree * block);
  for (int child = 1; child < mask && relative + child < place.size; child *= 2) {
    const int blocks = std::min(child, place.size - relative - child);
    schedule.ReceiveBytes(packed + child * block, blocks * block, RankAt(place, root, relative + child));
  }
  schedule.Pack(send.buffer, send.count, *send.type, packed);
  schedule.EndRound();
  schedule.SendBytes(packed, subtree * block, parent);
  schedule.EndRound();
}

void ScatterBinomialAtRoot(Schedule& schedule, Place place, const Uniform& send, const Uniform& receive, int root) {
  const MPI_Aint block = send.count * send.type->size;
  for (int mask = PowerOfTwoBelow(std::max(place.size - 1, 1)); mask > 0; mask /= 2) {
    if (mask >= place.size) continue;
    const int subtree = std::min(mask, place.size - mask);
    const Runs runs = RunsOf(place, root, mask, subtree);
    const uint8_t* first = At(send.buffer, runs.first * send.count, *send.type);
    if (runs.second_count == 0) {
      schedule.Send(first, subtree * send.count, *send.type, RankAt(place, root, mask));
      continue;
    }
    uint8_t* packed = schedule.Temporary(subtree * block);
    schedule.Pack(first, runs.first_count * send.count, *send.type, packed);
    schedule.Pack(send.buffer, runs.second_count * send.count, *send.type, packed + runs.first_count * block);
    schedule.SendBytes(packed, subtree * block, RankAt(place, root, mask));
  }
  if (receive.buffer != MPI_IN_PLACE) {
    schedule.Copy(At(send.buffer, root * send.count, *send.type), send.count, *send.type,
                  const_cast<void*>(receive.buffer), receive.count, *receive.type);
  }
  schedule.EndRound();
}

void ScatterBinomialElsewhere(Schedule& schedule, Place place, const Uniform& receive, int root) {
  void* const buffer = const_cast<void*>(receive.buffer);
  const int relative = (place.rank - root + place.size) % place.size;
  const MPI_Aint block = receive.count * receive.type->size;
  int mask = 1;
  while ((relative & mask) == 0) mask *= 2;
  const int parent = RankAt(place, root, relative - mask);
  const int subtree = std::min(mask, place.size - relative);
  if (subtree == 1) {
    schedule.Receive(buffer, receive.count, *receive.type, parent);
    schedule.EndRound();
    return;
  }
  uint8_t* packed = schedule.Temporary(subtree * block);
  schedule.ReceiveBytes(packed, subtree * block, parent);
  schedule.EndRound();
  for (int child = mask / 2; child > 0; child /= 2) {
    if (relative + child >= place.size) continue;
    schedule.SendBytes(packed + child * block, std::min(child, place.size - relative - child) * block,
                       RankAt(place, root, relative + child));
  }
  schedule.Unpack(packed, buffer, receive.count, *receive.type);
  schedule.EndRound();
}

}  // namespace

void BuildGather(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive,
                 int root) {
  if (algorithm == Algorithm::kBinomial) {
    if (place.rank == root) return GatherBinomialAtRoot(schedule, place, send, receive, root);
    return GatherBinomialElsewhere(schedule, place, send, root);
  }
  if (place.rank != root) {
    schedule.Send(send.buffer, send.count, *send.type, root);
    return schedule.EndRound();
  }
  void* const buffer = const_cast<void*>(receive.buffer);
  for (int rank = 0; rank < place.size; ++rank) {
    uint8_t* block = At(buffer, rank * receive.count, *receive.type);
    if (rank != root) {
      schedule.Receive(block, receive.count, *receive.type, rank);
    } else if (send.buffer != MPI_IN_PLACE) {
      schedule.Copy(send.buffer, send.count, *send.type, block, receive.count, *receive.type);
    }
  }
  schedule.EndRound();
}

void BuildGatherV(Schedule& schedule, Place place, const Uniform& send, const Varying& receive, int root) {
  if (place.rank != root) {
    if (send.count * send.type->size != 0) schedule.Send(send.buffer, send.count, *send.type, root);
    return schedule.EndRound();
  }
  void* const buffer = const_cast<void*>(receive.buffer);
  for (int rank = 0; rank < place.size; ++rank) {
    const MPI_Aint count = receive.counts[static_cast<size_t>(rank)];
    uint8_t* block = At(buffer, receive.displacements[static_cast<size_t>(rank)], *receive.type);
    if (rank == root) {
      if (send.buffer != MPI_IN_PLACE) schedule.Copy(send.buffer, send.count, *send.type, block, count, *receive.type);
    } else if (count * receive.type->size != 0) {
      schedule.ReceiveAtMost(block, count, *receive.type, rank);
    }
  }
  schedule.EndRound();
}

void BuildScatter(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive,
                  int root) {
  if (algorithm == Algorithm::kBinomial) {
    if (place.rank == root) return ScatterBinomialAtRoot(schedule, place, send, receive, root);
    return ScatterBinomialElsewhere(schedule, place, receive, root);
  }
  void* const buffer = const_cast<void*>(receive.buffer);
  if (place.rank != root) {
    schedule.Receive(buffer, receive.count, *receive.type, root);
    return schedule.EndRound();
  }
  for (int rank = 0; rank < place.size; ++rank) {
    const uint8_t* block = At(send.buffer, rank * send.count, *send.type);
    if (rank != root) {
      schedule.Send(block, send.count, *send.type, rank);
    } else if (receive.buffer != MPI_IN_PLACE) {
      schedule.Copy(block, send.count, *send.type, buffer, receive.count, *receive.type);
    }
  }
  schedule.EndRound();
}

void BuildScatterV(Schedule& schedule, Place place, const Varying& send, const Uniform& receive, int root) {
  void* const buffer = const_cast<void*>(receive.buffer);
  if (place.rank != root) {
    if (receive.count * receive.type->size != 0) schedule.ReceiveAtMost(buffer, receive.count, *receive.type, root);
    return schedule.EndRound();
  }
  for (int rank = 0; rank < place.size; ++rank) {
    const MPI_Aint count = send.counts[static_cast<size_t>(rank)];
    const uint8_t* block = At(send.buffer, send.displacements[static_cast<size_t>(rank)], *send.type);
    if (rank == root) {
      if (receive.buffer != MPI_IN_PLACE) schedule.Copy(block, count, *send.type, buffer, receive.count, *receive.type);
    } else if (count * send.type->size != 0) {
      schedule.Send(block, count, *send.type, rank);
    }
  }
  schedule.EndRound();
}

}  // namespace weft::mpi
