#ifndef MPI_HYBRID_P2P_SHM_CELLS_H_
#define MPI_HYBRID_P2P_SHM_CELLS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi_hybrid/shm/layout.h"

namespace weft::mpi::shm {

// How a process is reached: the first page of its part of Area::kMessages. Its line is its own, written before the
// job's fence; the rest is for those who connect.
struct PlaceCard {
  enum State : uint32_t { kNobody = 0, kHere = 1, kLeft = 2, kLost = 3, kOverwritten = 4 };  // kLost: it ended without a good-bye; kOverwritten: its words were

  alignas(kLine) std::atomic<uint32_t> state;  // kHere publishes the line: release at the process, acquire at those who connect
  uint64_t window;          // bytes that it stores for one peer
  uint64_t cookie_address;  // in its memory: who can read it there may copy from it
  uint8_t cookie[16];
  uint64_t mark;  // its AddressSpaceMark
  alignas(kLine) std::atomic<uint32_t> stays;  // 1: the process is sure to poll for a while (Presence). A hint, which orders nothing
  // A bit for each place that has connected to it; set before kKnock in its attention, and taken after that is cleared.
  alignas(kLine) std::atomic<uint64_t> callers[kMostPlaces / 64];
};
static_assert(sizeof(PlaceCard) <= kPage);

inline constexpr size_t kCellBytes = 8192;
inline constexpr size_t kCells = (kAreaSizes[static_cast<size_t>(Area::kMessages)].place - kPage) / kCellBytes;

// The cells behind the card: what the process writes and those it writes to read. Which are free only their owner
// knows, in memory of its own. The one that was given back last, which is in the cache, is taken first.
class Cells {
 public:
  // `area`: the process's part of Area::kMessages.
  explicit Cells(uint8_t* area) : first_(area + kPage) {
    for (size_t i = 0; i < kCells; ++i) free_list_[i] = static_cast<uint16_t>(kCells - 1 - i);
  }

  uint8_t* at(size_t cell) const { return first_ + cell * kCellBytes; }
  size_t free() const { return free_; }
  size_t Take() { return free_list_[--free_]; }  // there is one
  void Give(size_t cell) { free_list_[free_++] = static_cast<uint16_t>(cell); }

 private:
  uint8_t* const first_;
  std::array<uint16_t, kCells> free_list_{};
  size_t free_ = kCells;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_P2P_SHM_CELLS_H_
