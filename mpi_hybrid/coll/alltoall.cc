#include <algorithm>

#include "mpi_hybrid/coll/algorithms.h"

namespace weft::mpi {
namespace {

// Block i of `packed` is for rank + i. In round k the blocks whose number has bit k set move 2^k ranks on.
void Bruck(Schedule& schedule, Place place, const Uniform& send, const Uniform& receive) {
  const bool in_place = send.buffer == MPI_IN_PLACE;
  const void* const from = in_place ? receive.buffer : send.buffer;
  const MPI_Aint count = in_place ? receive.count : send.count;
  const Datatype& type = in_place ? *receive.type : *send.type;
  void* const buffer = const_cast<void*>(receive.buffer);
  const MPI_Aint block = count * type.size;

  uint8_t* packed = schedule.Temporary(place.size * block);
  const int before_wrap = place.size - place.rank;
  schedule.Pack(At(from, place.rank * count, type), before_wrap * count, type, packed);
  schedule.Pack(from, place.rank * count, type, packed + before_wrap * block);

  const MPI_Aint most = (place.size + 1) / 2 * block;
  uint8_t* outgoing = schedule.Temporary(most);
  uint8_t* incoming = schedule.Temporary(most);
  for (int distance = 1; distance < place.size; distance *= 2) {
    MPI_Aint bytes = 0;
    for (int i = distance; i < place.size; ++i) {
      if ((i & distance) == 0) continue;
      schedule.Pack(packed + i * block, block, *Datatype::Find(MPI_BYTE), outgoing + bytes);
      bytes += block;
    }
    schedule.ReceiveBytes(incoming, bytes, (place.rank - distance + place.size) % place.size);
    schedule.SendBytes(outgoing, bytes, (place.rank + distance) % place.size);
    schedule.EndRound();
    bytes = 0;
    for (int i = distance; i < place.size; ++i) {
      if ((i & distance) == 0) continue;
      schedule.Pack(incoming + bytes, block, *Datatype::Find(MPI_BYTE), packed + i * block);
      bytes += block;
    }
  }
  // Block i is now from rank - i.
  for (int i = 0; i < place.size; ++i) {
    const int source = (place.rank - i + place.size) % place.size;
    schedule.Unpack(packed + i * block, At(buffer, source * receive.count, *receive.type), receive.count,
                    *receive.type);
  }
}

// One side's blocks by rank, whatever form the collective has.
struct BlocksOf {
  explicit BlocksOf(const Uniform& uniform) : buffer(uniform.buffer), uniform(&uniform) {}
  explicit BlocksOf(const Varying& varying) : buffer(varying.buffer), varying(&varying) {}

  const Datatype& Type(int rank) const {
    if (uniform != nullptr) return *uniform->type;
    return varying->types.empty() ? *varying->type : *varying->types[static_cast<size_t>(rank)];
  }
  MPI_Aint Count(int rank) const {
    return uniform != nullptr ? uniform->count : varying->counts[static_cast<size_t>(rank)];
  }
  MPI_Aint Bytes(int rank) const { return Count(rank) * Type(rank).size; }
  uint8_t* Block(int rank) const {
    uint8_t* base = static_cast<uint8_t*>(const_cast<void*>(buffer));
    if (uniform != nullptr) return base + rank * uniform->count * uniform->type->extent;
    const MPI_Aint displacement = varying->displacements[static_cast<size_t>(rank)];
    return base + (varying->types.empty() ? displacement * varying->type->extent : displacement);
  }

  const void* buffer;
  const Uniform* uniform = nullptr;
  const Varying* varying = nullptr;
};

// In each round pairs of ranks exchange; the block that leaves is moved aside first.
void ExchangeInPlace(Schedule& schedule, Place place, const BlocksOf& blocks) {
  MPI_Aint most = 0;
  for (int rank = 0; rank < place.size; ++rank) most = std::max(most, blocks.Bytes(rank));
  uint8_t* aside = schedule.Temporary(most);
  for (int step = 0; step < place.size; ++step) {
    const int partner = (step - place.rank + place.size) % place.size;
    const MPI_Aint bytes = blocks.Bytes(partner);
    if (partner == place.rank || bytes == 0) continue;
    schedule.Pack(blocks.Block(partner), blocks.Count(partner), blocks.Type(partner), aside);
    schedule.Receive(blocks.Block(partner), blocks.Count(partner), blocks.Type(partner), partner);
    schedule.SendBytes(aside, bytes, partner);
    schedule.EndRound();
  }
}

// Rounds of `outstanding` messages each way, to the ranks behind one's own and from those before it, so that no rank is
// everyone's first.
void Exchange(Schedule& schedule, Place place, const BlocksOf& send, const BlocksOf& receive, int outstanding) {
  schedule.Copy(send.Block(place.rank), send.Count(place.rank), send.Type(place.rank), receive.Block(place.rank),
                receive.Count(place.rank), receive.Type(place.rank));
  for (int first = 1; first < place.size; first += outstanding) {
    const int end = std::min(first + outstanding, place.size);
    for (int distance = first; distance < end; ++distance) {
      const int source = (place.rank - distance + place.size) % place.size;
      if (receive.Bytes(source) != 0)
        schedule.ReceiveAtMost(receive.Block(source), receive.Count(source), receive.Type(source), source);
    }
    for (int distance = first; distance < end; ++distance) {
      const int destination = (place.rank + distance) % place.size;
      if (send.Bytes(destination) != 0)
        schedule.Send(send.Block(destination), send.Count(destination), send.Type(destination), destination);
    }
    schedule.EndRound();
  }
}

void InterExchange(Schedule& schedule, InterPlace place, const BlocksOf& send, const BlocksOf& receive) {
  const int most = std::max(place.local.size, place.remote_size);
  for (int first = 0; first < most; first += kMostOutstanding) {
    const int end = std::min(first + kMostOutstanding, most);
    for (int distance = first; distance < end; ++distance) {
      const int source = (place.local.rank - distance + most) % most;
      if (source < place.remote_size && receive.Bytes(source) != 0)
        schedule.ReceiveAtMost(receive.Block(source), receive.Count(source), receive.Type(source), source);
    }
    for (int distance = first; distance < end; ++distance) {
      const int destination = (place.local.rank + distance) % most;
      if (destination < place.remote_size && send.Bytes(destination) != 0)
        schedule.Send(send.Block(destination), send.Count(destination), send.Type(destination), destination);
    }
    schedule.EndRound();
  }
}

}  // namespace

void BuildAllToAll(Schedule& schedule, Place place, Algorithm algorithm, const Uniform& send, const Uniform& receive) {
  if (algorithm == Algorithm::kBruck) return Bruck(schedule, place, send, receive);
  if (send.buffer == MPI_IN_PLACE) return ExchangeInPlace(schedule, place, BlocksOf(receive));
  Exchange(schedule, place, BlocksOf(send), BlocksOf(receive),
           algorithm == Algorithm::kPairwise ? 1 : kMostOutstanding);
}

void BuildAllToAllV(Schedule& schedule, Place place, const Varying& send, const Varying& receive) {
  if (send.buffer == MPI_IN_PLACE) return ExchangeInPlace(schedule, place, BlocksOf(receive));
  Exchange(schedule, place, BlocksOf(send), BlocksOf(receive), kMostOutstanding);
}

void BuildInterAllToAll(Schedule& schedule, InterPlace place, const Uniform& send, const Uniform& receive) {
  InterExchange(schedule, place, BlocksOf(send), BlocksOf(receive));
}

void BuildInterAllToAllV(Schedule& schedule, InterPlace place, const Varying& send, const Varying& receive) {
  InterExchange(schedule, place, BlocksOf(send), BlocksOf(receive));
}

}  // namespace weft::mpi
