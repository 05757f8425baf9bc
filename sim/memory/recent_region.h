#ifndef SIM_MEMORY_RECENT_REGION_H_
#define SIM_MEMORY_RECENT_REGION_H_

#include <cstdint>
#include <optional>

#include "sim/memory/memory.h"

namespace weft::sim {

// Resolves scatter/gather elements of one queue pair, and remembers the region of the last one: programs use one over and over. Guarded by the lock with
// which the queue pair is asked to let go of memory (Adapter::ForgetRegion), held until what is resolved is known to who is asked.
class RecentRegion {
 public:
  RecentRegion(MemoryTable& table, const MemoryUser& user) : table_(table), user_(user) {}

  // As MemoryTable::ResolveLocal().
  uint8_t* Resolve(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write) {
    const int access = (write ? IBV_ACCESS_LOCAL_WRITE : 0) | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0);
    if (changes_ == table_.changes() && lkey == region_.stag.value && pd.id == pd_) [[likely]] {
      const uint64_t offset = address - region_.offset;
      const bool inside = address >= region_.offset && offset <= region_.length && length <= region_.length - offset;
      if (inside && (region_.access & access) == access) [[likely]] return reinterpret_cast<uint8_t*>(region_.address + offset);
    }
    return ResolveAnew(pd, lkey, address, length, write, remote_write);
  }

 private:
  [[gnu::noinline]] uint8_t* ResolveAnew(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write) {
    changes_ = 0;
    const uint64_t before = table_.changes();
    const auto region = table_.FindLocal(pd, lkey, user_);
    if (region && !(region->access & IBV_ACCESS_ON_DEMAND)) {  // else its pages are looked at each time
      region_ = *region;
      pd_ = pd.id;
      changes_ = before;
    }
    return table_.ResolveLocal(pd, lkey, address, length, write, remote_write, user_);
  }

  MemoryTable& table_;
  const MemoryUser user_;
  uint64_t changes_ = 0;  // of the table when it was found; 0: there is none
  uint32_t pd_ = 0;
  RegionInfo region_;
};

}  // namespace weft::sim

#endif  // SIM_MEMORY_RECENT_REGION_H_
