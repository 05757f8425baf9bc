#ifndef MPI_HYBRID_HOST_LAYOUT_H_
#define MPI_HYBRID_HOST_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi_hybrid/host/affinity_table.h"
#include "mpi_hybrid/host/bell.h"

namespace weft::mpi::host {

// The layout of a host's segment, from the front: a header; one slot per place; the table of affinities; memory for the
// messages of each place and of each pair of places; ranges that are allocated while the job runs. Pages that were never
// touched take no memory.
//
// Every process of the job on this host can write all of it. A process that reads a length, an index or a state that
// another process may have written copies the value and checks the copy.

inline constexpr size_t kLine = 64;    // bytes of a cache line
// bytes; the unit of this layout. Ranges are whole pages of the kernel (base/page_size.h), which may be larger
inline constexpr size_t kPage = 4096;
inline constexpr int kMostPlaces = 1024;

// Bytes for the messages of each place (a card, side by side with those of the others, and cells), and of each ordered
// pair of places (rings). Zero at the start; p2p/host defines the contents.
inline constexpr size_t kCardBytes = kPage, kPlaceBytes = 1 << 20, kPairBytes = kPage;

struct Header {
  static constexpr uint64_t kMagic = 0x3367'6573'7466'6577;  // "weftseg3"

  uint64_t magic;
  uint32_t places;
  alignas(kLine) std::atomic<uint64_t> next_range;  // offset of the next range to allocate; publishes nothing
  // how many places have given up (GiveUp); publishes the states that p2p/host stores before
  alignas(kLine) std::atomic<uint32_t> gave_up;
};

// A process, as described by itself. It is written once, when the process joins, except for `presence`, `processor` and
// `attention`.
struct alignas(kLine) Slot {
  enum Presence : uint32_t { kAbsent = 0, kJoined = 1, kLeft = 2 };
  enum Attention : uint32_t { kAsleep = 1, kNaps = 1u << 31 };  // kNaps: asleep in futex(2); the other bits are for p2p/host

  // kJoined publishes the fields below: stored with release by the process (TakePlace), loaded with acquire by the
  // others (Settle, PidOf)
  std::atomic<uint32_t> presence;
  uint32_t pid;
  BellName bell;
  // the processor on which it last waited, plus one; 0: it has not waited (processors.h). A hint, which orders nothing
  std::atomic<uint32_t> processor;

  // What other processes must check after they changed something for this process. It is in a cache line of its own
  // that is seldom written. kAsleep pairs with whatever they change. The process sets kAsleep and then checks
  // (WillSleep); the others change something and then load `attention` (Ring). Each side has a full fence between the
  // two.
  alignas(kLine) std::atomic<uint32_t> attention;
};

inline constexpr size_t kHeaderBytes = kPage;

constexpr size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Offsets of the parts with a fixed place.
constexpr size_t AffinitiesStart(size_t places) { return RoundUp(kHeaderBytes + places * sizeof(Slot), kPage); }
constexpr size_t CardsStart(size_t places) { return RoundUp(AffinitiesStart(places) + places * sizeof(Affinity), kPage); }
constexpr size_t PlacesStart(size_t places) { return CardsStart(places) + places * kCardBytes; }
constexpr size_t PairsStart(size_t places) { return PlacesStart(places) + places * kPlaceBytes; }
// The pairs are in tiles of 16 places by 16. What a place reads from many others, and what it writes for them, is then in
// few page tables: one for 2 MiB. In rows, each pair in which it reads would be in another one.
inline constexpr size_t kTile = 16;
constexpr size_t TilesAcross(size_t places) { return (places + kTile - 1) / kTile; }
constexpr size_t PairOffset(size_t from, size_t to, size_t places) {
  const size_t tile = from / kTile * TilesAcross(places) + to / kTile;
  return (tile * kTile * kTile + from % kTile * kTile + to % kTile) * kPairBytes;
}
// Bytes of all parts with a fixed place.
constexpr size_t FixedBytes(size_t places) {
  return PairsStart(places) + TilesAcross(places) * TilesAcross(places) * kTile * kTile * kPairBytes;
}

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_LAYOUT_H_
