#include <cerrno>
#include <mutex>

#include "sim/memory.h"
#include "sim/memory_slot.h"

// Memory windows: STags that open a part of a region to peers, and are given and taken in the order of a send queue.
namespace weft::sim {

Result<ddp::STag, int> MemoryTable::AllocateWindow(Pd& pd, ibv_mw_type type) {
  Slot* slot = TakeSlot();
  if (slot == nullptr) return ENOMEM;
  std::lock_guard lock(*slot);
  slot->kind = type == IBV_MW_TYPE_1 ? Kind::kWindow1 : Kind::kWindow2;
  slot->pd = pd.id;
  slot->windows = 0;
  slot->owner = kNoWindowOwner;
  slot->info = {};
  slot->live = true;
  slot->valid = false;
  return slot->stag();
}

bool MemoryTable::DeallocateWindow(ddp::STag stag, RegionInfo* was) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return false;
  {
    std::lock_guard windows(windows_mutex_);
    ddp::STag left;
    MemoryUsers users;
    bool bound;
    {
      std::lock_guard lock(*slot);
      if (!slot->live || !IsWindow(slot->kind)) return false;
      Tell(was, *slot);
      bound = slot->valid;
      left = slot->region;
      users = slot->info.users;
      slot->live = slot->valid = false;
    }
    if (bound) LeaveRegion(left, users);
  }
  ReturnSlot(stag);
  return true;
}

bool MemoryTable::BindWindow(const Pd& pd, WindowOwner owner, const WindowBind& bind, RegionInfo* was) {
  Slot* slot = Find(bind.window);
  if (slot == nullptr) return false;
  std::lock_guard windows(windows_mutex_);  // nobody else changes a window meanwhile
  ddp::STag left;
  MemoryUsers users;
  bool was_bound;
  {
    std::lock_guard lock(*slot);
    if (!slot->live || !IsWindow(slot->kind) || slot->pd != pd.id) return false;
    if (slot->kind == Kind::kWindow2 && (slot->valid || bind.length == 0)) return false;
    was_bound = slot->valid;
    left = slot->region;
  }
  RegionInfo bound;
  if (bind.length != 0 && !BindToRegion(pd, bind, &bound)) return false;
  {
    std::lock_guard lock(*slot);
    Tell(was, *slot);
    users = slot->info.users;
    slot->key = static_cast<uint8_t>(bind.window.value);
    slot->owner = slot->kind == Kind::kWindow2 ? owner : kNoWindowOwner;
    slot->region = bind.region;
    slot->info = bound;
    slot->valid = bind.length != 0;
  }
  if (was_bound) LeaveRegion(left, users);
  return true;
}

bool MemoryTable::BindToRegion(const Pd& pd, const WindowBind& bind, RegionInfo* bound) {
  Slot* slot = Find(bind.region);
  if (slot == nullptr) return false;
  std::lock_guard lock(*slot);
  const RegionInfo& region = slot->info;
  if (!slot->valid || slot->kind != Kind::kRegion || slot->stag() != bind.region || slot->pd != pd.id) return false;
  if (!(region.access & IBV_ACCESS_MW_BIND)) return false;
  const bool writes = bind.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  if (writes && !(region.access & IBV_ACCESS_LOCAL_WRITE)) return false;
  if (bind.address + bind.length < bind.address) return false;
  if (bind.address < region.offset || bind.address + bind.length > region.offset + region.length) return false;
  ++slot->windows;
  *bound = {bind.window, region.address + (bind.address - region.offset),
            bind.access & IBV_ACCESS_ZERO_BASED ? 0 : bind.address, bind.length,
            bind.access | (region.access & IBV_ACCESS_ON_DEMAND)};
  return true;
}

// A region with windows is neither deregistered nor invalidated, so it is still there. Who used the window used the region.
void MemoryTable::LeaveRegion(ddp::STag region, MemoryUsers users) {
  Slot* slot = Find(region);
  std::lock_guard lock(*slot);
  slot->info.users |= users;
  --slot->windows;
}

}  // namespace weft::sim
