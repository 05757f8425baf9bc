#include <algorithm>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"

namespace weft::mpi {
namespace {

void DoublingAllGather(Schedule& schedule, Place place, const Uniform& receive) {
  void* const buffer = const_cast<void*>(receive.buffer);
  for (int mask = 1; mask < place.size; mask *= 2) {
    const int partner = place.rank ^ mask;
    const int mine = place.rank & ~(mask - 1), theirs = partner & ~(mask - 1);
    schedule.Receive(At(buffer, theirs * receive.count, *receive.type), mask * receive.count, *receive.type, partner);
    schedule.Send(At(buffer, mine * receive.count, *receive.type), mask * receive.count, *receive.type, partner);
    schedule.EndRound();
  }
}

void RingAllGather(Schedule& schedule, Place place, const Uniform& receive) {
  void* const buffer = const_cast<void*>(receive.buffer);
  const int left = (place.rank - 1 + place.size) % place.size, right = (place.rank + 1) % place.size;
  for (int step = 0; step < place.size - 1; ++step) {
    const int sent = (place.rank - step + place.size) % place.size;
    const int received = (sent - 1 + place.size) % place.size;
    schedule.Receive(At(buffer, received * receive.count, *receive.type), receive.count, *receive.type, left);
    schedule.Send(At(buffer, sent * receive.count, *receive.type), receive.count, *receive.type, right);
    schedule.EndRound();
  }
}

// Bruck: `packed` holds the blocks of ranks rank, rank + 1, ... (cyclic), of which the first is there; `begin(i)`:
// where the i-th starts, for i up to the number of ranks.
template <typename Begin>
void BruckRounds(Schedule& schedule, Place place, uint8_t* packed, Begin begin) {
  for (int distance = 1; distance < place.size; distance *= 2) {
    const int blocks = std::min(distance, place.size - distance);
    const int from = (place.rank + distance) % place.size, to = (place.rank - distance + place.size) % place.size;
    schedule.ReceiveBytes(packed + begin(distance), begin(distance + blocks) - begin(distance), from);
    schedule.SendBytes(packed, begin(blocks), to);
    schedule.EndRound();
  }
}

void BruckAllGather(Schedule& schedule, Place place, const Uniform& receive, const void* own, MPI_Aint own_count,
                    const Datatype& own_type) {
  void* const buffer = const_cast<void*>(receive.buffer);
  const MPI_Aint block = receive.count * receive.type->size;
  uint8_t* packed = schedule.Temporary(place.size * block);
  schedule.Pack(own, own_count, own_type, packed);
  BruckRounds(schedule, place, packed, [&](int index) { return index * block; });
  const int before_wrap = place.size - place.rank;
  schedule.Unpack(packed, At(buffer, place.rank * receive.count, *receive.type), before_wrap * receive.count,
                  *receive.type);
  schedule.Unpack(packed + before_wrap * block, buffer, place.rank * receive.count, *receive.type);
}

}  // namespace

void BuildAllGather(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive) {
  uint8_t* own = At(const_cast<void*>(receive.buffer), place.rank * receive.count, *receive.type);
  const bool in_place = send.buffer == MPI_IN_PLACE;
  if (algorithm == Algorithm::kBruck) {
    if (in_place) return BruckAllGather(schedule, place, receive, own, receive.count, *receive.type);
    return BruckAllGather(schedule, place, receive, send.buffer, send.count, *send.type);
  }
  if (!in_place) schedule.Copy(send.buffer, send.count, *send.type, own, receive.count, *receive.type);
  if (algorithm == Algorithm::kDoubling)
    DoublingAllGather(schedule, place, receive);
  else
    RingAllGather(schedule, place, receive);
}

void BuildAllGatherV(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send,
                     const Varying& receive) {
  const Datatype& type = *receive.type;
  void* const buffer = const_cast<void*>(receive.buffer);
  auto count = [&](int rank) { return receive.counts[static_cast<size_t>(rank)]; };
  auto block = [&](int rank) { return At(buffer, receive.displacements[static_cast<size_t>(rank)], type); };
  if (send.buffer != MPI_IN_PLACE)
    schedule.Copy(send.buffer, send.count, *send.type, block(place.rank), count(place.rank), type);

  if (algorithm == Algorithm::kBruck) {
    std::vector<MPI_Aint> begin(static_cast<size_t>(place.size) + 1);
    for (int i = 0; i < place.size; ++i) {
      begin[static_cast<size_t>(i) + 1] =
          begin[static_cast<size_t>(i)] + count((place.rank + i) % place.size) * type.size;
    }
    uint8_t* packed = schedule.Temporary(begin.back());
    schedule.Pack(block(place.rank), count(place.rank), type, packed);
    BruckRounds(schedule, place, packed, [&](int index) { return begin[static_cast<size_t>(index)]; });
    for (int i = 1; i < place.size; ++i) {
      const int rank = (place.rank + i) % place.size;
      schedule.Unpack(packed + begin[static_cast<size_t>(i)], block(rank), count(rank), type);
    }
    return;
  }
  const int left = (place.rank - 1 + place.size) % place.size, right = (place.rank + 1) % place.size;
  for (int step = 0; step < place.size - 1; ++step) {
    const int sent = (place.rank - step + place.size) % place.size;
    const int received = (sent - 1 + place.size) % place.size;
    if (count(received) * type.size != 0) schedule.Receive(block(received), count(received), type, left);
    if (count(sent) * type.size != 0) schedule.Send(block(sent), count(sent), type, right);
    schedule.EndRound();
  }
}

}  // namespace weft::mpi
