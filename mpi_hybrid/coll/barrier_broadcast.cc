#include <algorithm>

#include "mpi_hybrid/coll/algorithms.h"

namespace weft::mpi {
namespace {

// The buffer as blocks of bytes; trailing ones may be short or empty.
struct Blocks {
  uint8_t* memory;
  MPI_Aint bytes;
  MPI_Aint block;

  MPI_Aint Begin(int index) const { return std::min(bytes, index * block); }
  MPI_Aint Length(int first, int count) const { return Begin(first + count) - Begin(first); }
};

int RankOfRelative(Place place, int root, int relative) { return (relative + root) % place.size; }

// The ranks' numbers: from the root's, 0, on. `reversed`: with their bits in reverse order. Then the numbers that are
// far apart, which exchange the longest pieces, are neighbours by rank, which often share a host.
struct Numbers {
  Place place;
  int root;
  bool reversed;

  int Own() const { return Turned((place.rank - root + place.size) % place.size); }
  int RankOf(int number) const { return RankOfRelative(place, root, Turned(number)); }
  int Turned(int number) const { return reversed ? ReversedBits(number, place.size) : number; }
};

void BroadcastAlongTree(Schedule& schedule, Place place, void* buffer, MPI_Aint count, const Datatype& type, int root) {
  const int relative = (place.rank - root + place.size) % place.size;
  int mask = 1;
  while (mask < place.size && (relative & mask) == 0) mask *= 2;
  if (relative != 0) {
    schedule.Receive(buffer, count, type, RankOfRelative(place, root, relative - mask));
    schedule.EndRound();
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    if (relative + mask < place.size) schedule.Send(buffer, count, type, RankOfRelative(place, root, relative + mask));
  }
  schedule.EndRound();
}

// Each rank ends with its own block and those of its subtree; returns nothing else of value.
void ScatterBlocks(Schedule& schedule, const Numbers& numbers, const Blocks& blocks) {
  const int own = numbers.Own(), size = numbers.place.size;
  int mask = 1;
  while (mask < size && (own & mask) == 0) mask *= 2;
  if (own != 0) {
    const int subtree = std::min(mask, size - own);
    schedule.ReceiveBytes(blocks.memory + blocks.Begin(own), blocks.Length(own, subtree), numbers.RankOf(own - mask));
    schedule.EndRound();
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    const int child = own + mask;
    if (child >= size) continue;
    schedule.SendBytes(blocks.memory + blocks.Begin(child), blocks.Length(child, std::min(mask, size - child)),
                       numbers.RankOf(child));
  }
  schedule.EndRound();
}

void DoublingOfBlocks(Schedule& schedule, const Numbers& numbers, const Blocks& blocks) {
  const int own = numbers.Own();
  for (int mask = 1; mask < numbers.place.size; mask *= 2) {
    const int partner = numbers.RankOf(own ^ mask);
    const int mine = own & ~(mask - 1), theirs = mine ^ mask;
    schedule.ReceiveBytes(blocks.memory + blocks.Begin(theirs), blocks.Length(theirs, mask), partner);
    schedule.SendBytes(blocks.memory + blocks.Begin(mine), blocks.Length(mine, mask), partner);
    schedule.EndRound();
  }
}

void RingOfBlocks(Schedule& schedule, Place place, const Blocks& blocks, int root) {
  const int relative = (place.rank - root + place.size) % place.size;
  const int left = (place.rank - 1 + place.size) % place.size, right = (place.rank + 1) % place.size;
  for (int step = 0; step < place.size - 1; ++step) {
    const int sent = (relative - step + place.size) % place.size;
    const int received = (sent - 1 + place.size) % place.size;
    schedule.ReceiveBytes(blocks.memory + blocks.Begin(received), blocks.Length(received, 1), left);
    schedule.SendBytes(blocks.memory + blocks.Begin(sent), blocks.Length(sent, 1), right);
    schedule.EndRound();
  }
}

}  // namespace

// Dissemination: after round k each rank has heard, directly or not, of 2^k ranks before it.
void BuildBarrier(Schedule& schedule, Place place) {
  for (int distance = 1; distance < place.size; distance *= 2) {
    schedule.ReceiveBytes(nullptr, 0, (place.rank - distance + place.size) % place.size);
    schedule.SendBytes(nullptr, 0, (place.rank + distance) % place.size);
    schedule.EndRound();
  }
}

void BuildBroadcast(Schedule& schedule, Place place, Algorithm algorithm, void* buffer, MPI_Aint count,
                    const Datatype& type, int root) {
  if (algorithm == Algorithm::kBinomial) return BroadcastAlongTree(schedule, place, buffer, count, type, root);
  if (place.size == 1) return;
  Blocks blocks;
  blocks.bytes = count * type.size;
  blocks.block = (blocks.bytes + place.size - 1) / place.size;
  blocks.memory = type.dense ? static_cast<uint8_t*>(buffer) : schedule.Temporary(blocks.bytes);
  if (!type.dense && place.rank == root) schedule.Pack(buffer, count, type, blocks.memory);
  const Numbers numbers{place, root, algorithm == Algorithm::kScatterDoubling};
  ScatterBlocks(schedule, numbers, blocks);
  if (algorithm == Algorithm::kScatterDoubling)
    DoublingOfBlocks(schedule, numbers, blocks);
  else
    RingOfBlocks(schedule, place, blocks, root);
  if (!type.dense && place.rank != root) schedule.Unpack(blocks.memory, buffer, count, type);
}

}  // namespace weft::mpi
