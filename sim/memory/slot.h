#ifndef SIM_MEMORY_SLOT_H_
#define SIM_MEMORY_SLOT_H_

#include <cstdint>

#include "base/spin_lock.h"
#include "sim/memory/memory.h"

namespace weft::sim {

// A slot of the table. Guarded by its lock, a spin lock held for a few instructions. Slots are never freed, so a stale
// STag finds a slot that does not match.
struct MemoryTable::Slot {
  SpinLock mutex;
  Kind kind = Kind::kRegion;
  bool live = false;
  bool valid = false;   // false: invalidated, or a window that is not bound
  uint8_t key = 0;
  uint32_t pd = 0;
  uint32_t index = 0;   // the upper 24 bits of its STags
  uint32_t windows = 0; // number of windows bound to this region
  WindowOwner owner = kNoWindowOwner;  // of a bound window of type 2
  ddp::STag region;     // the region that the window is bound to
  RegionInfo info;

  void lock() { mutex.lock(); }
  void unlock() { mutex.unlock(); }
  ddp::STag stag() const { return ddp::STag(index << 8 | key); }
};

}  // namespace weft::sim

#endif  // SIM_MEMORY_SLOT_H_
