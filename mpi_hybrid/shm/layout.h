#ifndef MPI_HYBRID_SHM_LAYOUT_H_
#define MPI_HYBRID_SHM_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::mpi::shm {

// The layout of a host's segment, from the front: a header; one slot per place; areas with memory for each place and
// for each pair of places; ranges that are allocated while the job runs. Pages that were never touched take no memory.
//
// Every process of the job on this host can write all of it. A process that reads a length, an index or a state that
// another process may have written copies the value and checks the copy.

inline constexpr size_t kLine = 64;    // bytes of a cache line
// bytes; the unit of this layout. Ranges are whole pages of the kernel (base/page_size.h), which may be larger
inline constexpr size_t kPage = 4096;
inline constexpr int kMostPlaces = 1024;

// The user of an area, which defines its contents. Zero at the start.
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
  alignas(kLine) std::atomic<uint64_t> next_range;  // offset of the next range to allocate; publishes nothing
};

// A process, as described by itself. It is written once, when the process joins, except for `presence`, `processor` and
// `attention`.
struct alignas(kLine) Slot {
  enum Presence : uint32_t { kAbsent = 0, kJoined = 1, kLeft = 2 };
  enum Attention : uint32_t { kAsleep = 1 };  // the other bits are for the user of Area::kMessages

  // kJoined publishes the fields below: stored with release by the process (TakePlace), loaded with acquire by the
  // others (Settle, PidOf)
  std::atomic<uint32_t> presence;
  uint32_t pid;
  uint8_t bell_name[16];  // bell.h
  uint8_t bell_key[8];
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

// SlotsEnd: bytes in front of the areas. AreaBytes: bytes of an area.
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
// Bytes of all parts with a fixed place.
constexpr size_t FixedBytes(size_t places) {
  return AreaStart(Area::kWindows, places) + AreaBytes(Area::kWindows, places);
}

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_LAYOUT_H_
