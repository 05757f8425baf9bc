#ifndef MPI_HYBRID_P2P_HOST_CELLS_H_
#define MPI_HYBRID_P2P_HOST_CELLS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi_hybrid/host/layout.h"

namespace weft::mpi::host {

// A bit of Slot::attention: another process has connected, or the state on its card has changed.
inline constexpr uint32_t kKnock = 2;

// How to reach a process. The process writes its own line before the job's fence; processes that connect to it write the
// rest.
struct PlaceCard {
  // kLost: it ended without a goodbye; kOverwritten: its words were overwritten
  enum State : uint32_t { kNobody = 0, kHere = 1, kLeft = 2, kLost = 3, kOverwritten = 4 };

  // kHere publishes the line: stored with release by the process, loaded with acquire by processes that connect. The
  // states after it pair with `callers`: the process stores its state and then reads `callers`, a process that connects
  // sets its bit and then reads the state, all sequentially consistent
  alignas(kLine) std::atomic<uint32_t> state;
  uint64_t window;          // bytes that it stores for one peer
  uint64_t cookie_address;  // address in its memory: a process that can read the cookie there may copy from that memory
  uint8_t cookie[16];
  uint64_t mark;  // its AddressSpaceMark
  // 1: the process is certain to poll for a while (Presence). A hint, which orders nothing
  alignas(kLine) std::atomic<uint32_t> stays;
  // One bit for each place that has connected to it. It is set before kKnock in the attention word, and cleared after
  // kKnock is cleared.
  alignas(kLine) std::atomic<uint64_t> callers[kMostPlaces / 64];
};
static_assert(sizeof(PlaceCard) <= kCardBytes);

inline constexpr size_t kCellBytes = 8192;
inline constexpr size_t kCells = kPlaceBytes / kCellBytes;

// The cells of a process: it writes them, and its peers read them. Only the owner knows which are free, in
// its own memory. The cell that was returned last is used first, because it is in the cache.
class Cells {
 public:
  // `area`: the process's part of the segment.
  explicit Cells(uint8_t* area) : first_(area) {
    for (size_t i = 0; i < kCells; ++i) free_list_[i] = static_cast<uint16_t>(kCells - 1 - i);
  }

  uint8_t* at(size_t cell) const { return first_ + cell * kCellBytes; }
  size_t free() const { return free_; }
  size_t Take() { return free_list_[--free_]; }  // there must be one
  void Give(size_t cell) { free_list_[free_++] = static_cast<uint16_t>(cell); }

 private:
  uint8_t* const first_;
  std::array<uint16_t, kCells> free_list_{};
  size_t free_ = kCells;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_P2P_HOST_CELLS_H_
