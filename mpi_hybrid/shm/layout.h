#ifndef MPI_HYBRID_SHM_LAYOUT_H_
#define MPI_HYBRID_SHM_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::mpi::shm {

// What the segment of a host holds, from the front: a header, a slot for each place, then areas with memory for each
// place and for each pair of places, then ranges that are given out while the job runs. Pages that nobody touched cost
// nothing.
//
// All of it can be written by each process of the job on this host. Whoever reads a length, an index or a state that
// another may have written copies it, and checks the copy.

inline constexpr size_t kLine = 64;    // bytes of a cache line
inline constexpr size_t kPage = 4096;  // bytes, a unit of this layout; ranges are whole pages of the kernel (base/page_size.h), which may be longer
inline constexpr int kMostPlaces = 1024;

// Who uses an area; each knows itself what is in there. Zero at the start.
enum class Area : uint8_t { kMessages, kCollectives, kWindows };
inline constexpr size_t kAreas = 3;

struct AreaSize {
  size_t place;  // bytes for each place
  size_t pair;   // bytes for each ordered pair of places
};
inline constexpr AreaSize kAreaSizes[kAreas] = {
    {.place = 1 << 20, .pair = kPage},  // cells; rings
    {.place = 1 << 20, .pair = 0},
    {.place = 1 << 16, .pair = 0},
};

struct Header {
  static constexpr uint64_t kMagic = 0x3167'6573'7466'6577;  // "weftseg1"

  uint64_t magic;
  uint32_t places;
  alignas(kLine) std::atomic<uint64_t> next_range;  // offset of the next range that is given out; publishes nothing
};

// A process, as it says itself. Written once when it joins, but for `presence`, `processor` and `attention`.
struct alignas(kLine) Slot {
  enum Presence : uint32_t { kAbsent = 0, kJoined = 1, kLeft = 2 };
  enum Attention : uint32_t { kAsleep = 1 };  // the others are for the area that needs them

  std::atomic<uint32_t> presence;  // kJoined publishes what follows: release at the process (TakePlace), acquire at the others (Settle, PidOf)
  uint32_t pid;
  uint8_t bell_name[16];  // bell.h
  uint8_t bell_key[8];
  std::atomic<uint32_t> processor;  // on which it last waited, plus one; 0: it did not (processors.h). A hint, which orders nothing

  // What others must see to after they changed something for this process; in a line of its own, which is seldom
  // written. kAsleep pairs with whatever they change: the process sets it and looks (WillSleep), they change and look (Ring), a full fence
  // between the two at each side.
  alignas(kLine) std::atomic<uint32_t> attention;
};

inline constexpr size_t kHeaderBytes = kPage;

constexpr size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Bytes in front of the areas, and of each area, with `places`.
constexpr size_t SlotsEnd(size_t places) { return RoundUp(kHeaderBytes + places * sizeof(Slot), kPage); }
constexpr size_t AreaBytes(Area area, size_t places) {
  const AreaSize& size = kAreaSizes[static_cast<size_t>(area)];
  return places * size.place + places * places * size.pair;
}
constexpr size_t AreaStart(Area area, size_t places) {
  size_t at = SlotsEnd(places);
  for (size_t i = 0; i < static_cast<size_t>(area); ++i) at += AreaBytes(static_cast<Area>(i), places);
  return at;
}
// Of all that has its place from the start.
constexpr size_t FixedBytes(size_t places) {
  return AreaStart(Area::kWindows, places) + AreaBytes(Area::kWindows, places);
}

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_LAYOUT_H_
