#ifndef SIM_MEMORY_RECENT_REGIONS_H_
#define SIM_MEMORY_RECENT_REGIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/memory/memory.h"

namespace weft::sim {

// Resolves scatter/gather elements of one queue pair, and caches the last two regions: programs use one region again
// and again, or one for headers and one for data. Guarded by the lock under which the queue pair is asked to release
// memory (Adapter::ForgetRegion). The lock must be held until the result is recorded where that request finds it.
class RecentRegions {
 public:
  RecentRegions(MemoryTable& table, const MemoryUser& user) : table_(table), user_(user) {}

  // See MemoryTable::ResolveLocal().
  uint8_t* Resolve(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write) {
    const int access = (write ? IBV_ACCESS_LOCAL_WRITE : 0) | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0);
    if (IsThat(known_[latest_], pd, lkey)) [[likely]] return Locate(known_[latest_], address, length, access);
    return ResolveOther(pd, lkey, address, length, write, remote_write);
  }

 private:
  struct Known {
    uint64_t changes = 0;  // of the table, before the look-up; 0: none
    uint32_t pd = 0, lkey = 0;
    int access = 0;
    uint64_t address = 0, offset = 0, length = 0;  // as in RegionInfo
  };

  bool IsThat(const Known& known, const Pd& pd, uint32_t lkey) const {
    return known.changes == table_.changes() && known.lkey == lkey && known.pd == pd.id;
  }

  [[gnu::noinline]] uint8_t* ResolveOther(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write) {
    const int access = (write ? IBV_ACCESS_LOCAL_WRITE : 0) | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0);
    latest_ = 1 - latest_;
    Known& known = known_[latest_];
    if (IsThat(known, pd, lkey)) return Locate(known, address, length, access);
    const uint64_t changes = table_.changes();
    const auto region = table_.FindLocal(pd, lkey, user_);
    // On-demand pages are checked at each access.
    if (!region || region->access & IBV_ACCESS_ON_DEMAND) return table_.ResolveLocal(pd, lkey, address, length, write, remote_write, user_);
    known = {changes, pd.id, lkey, region->access, region->address, region->offset, region->length};
    return Locate(known, address, length, access);
  }

  static uint8_t* Locate(const Known& known, uint64_t address, uint32_t length, int access) {
    const uint64_t offset = address - known.offset;
    if (address < known.offset || offset > known.length || length > known.length - offset) return nullptr;
    return (known.access & access) == access ? reinterpret_cast<uint8_t*>(known.address + offset) : nullptr;
  }

  MemoryTable& table_;
  const MemoryUser user_;
  std::array<Known, 2> known_;
  size_t latest_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_MEMORY_RECENT_REGIONS_H_
