#include "sim/memory/memory.h"

#include <sys/random.h>

#include <cerrno>
#include <mutex>

#include "base/log.h"
#include "sim/device/limits.h"
#include "sim/memory/slot.h"
#include "sim/memory/null_memory.h"
#include "sim/memory/pages.h"

namespace weft::sim {
namespace {

constexpr uint32_t kIndexBits = 24;
constexpr uint32_t kHalfBits = kIndexBits / 2;
constexpr uint32_t kHalfMask = (1u << kHalfBits) - 1;
constexpr size_t kFreeBeforeReuse = 64;  // freed slots wait at least this long in line

// IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT of newer headers: rights to an operation that nobody has yet.
constexpr int kAccessFlushGlobal = 1 << 8, kAccessFlushPersistent = 1 << 9;
constexpr int kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                             IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | kAccessFlushGlobal | kAccessFlushPersistent;
constexpr int kWrites = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

uint32_t RoundFunction(uint32_t half, uint32_t key) {
  uint32_t x = (half ^ key) * 0x9e3779b1u;
  return (x ^ (x >> 15)) & kHalfMask;
}

}  // namespace

MemoryTable::MemoryTable() {
  if (getrandom(keys_.data(), sizeof keys_, 0) != sizeof keys_) keys_ = {1, 2, 3, 4};
}

MemoryTable::~MemoryTable() {
  for (auto& chunk : chunks_) delete[] chunk.load();
}

// A Feistel network: STag indices of consecutive registrations are unrelated (RFC 5042 section 6.2).
uint32_t MemoryTable::Scramble(uint32_t slot) const {
  uint32_t left = slot >> kHalfBits, right = slot & kHalfMask;
  for (uint32_t key : keys_) {
    const uint32_t next = left ^ RoundFunction(right, key);
    left = right;
    right = next;
  }
  return left << kHalfBits | right;
}

uint32_t MemoryTable::Unscramble(uint32_t index) const {
  uint32_t left = index >> kHalfBits, right = index & kHalfMask;
  for (size_t i = keys_.size(); i-- > 0;) {
    const uint32_t previous = right ^ RoundFunction(left, keys_[i]);
    right = left;
    left = previous;
  }
  return left << kHalfBits | right;
}

MemoryTable::Slot* MemoryTable::Find(ddp::STag stag) {
  const uint32_t slot = Unscramble(stag.value >> 8);
  if (slot >= kSlotsPerChunk * kChunks) return nullptr;
  Slot* chunk = chunks_[slot / kSlotsPerChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : chunk + slot % kSlotsPerChunk;
}

MemoryTable::Slot* MemoryTable::TakeSlot() {
  uint32_t number;
  {
    std::lock_guard lock(mutex_);
    if (free_.size() - free_front_ > kFreeBeforeReuse) {
      number = free_[free_front_++];
      if (free_front_ > 4096 && free_front_ * 2 > free_.size()) {
        free_.erase(free_.begin(), free_.begin() + static_cast<ptrdiff_t>(free_front_));
        free_front_ = 0;
      }
    } else {
      // STag index 0 with key 0 would be STag 0, which some peers take for "none".
      do {
        number = slots_++;
      } while (Scramble(number) == 0);
      if (number >= kSlotsPerChunk * kChunks) {
        --slots_;
        return nullptr;
      }
      auto& chunk = chunks_[number / kSlotsPerChunk];
      if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Slot[kSlotsPerChunk], std::memory_order_release);
    }
  }
  Slot& slot = chunks_[number / kSlotsPerChunk].load(std::memory_order_acquire)[number % kSlotsPerChunk];
  uint8_t step = 0;
  [[maybe_unused]] ssize_t got = getrandom(&step, 1, 0);
  std::lock_guard lock(slot);
  slot.index = Scramble(number);
  slot.key = static_cast<uint8_t>(slot.key + 1 + step % 255);  // never the key that it had last
  return &slot;
}

void MemoryTable::ReturnSlot(ddp::STag stag) {
  std::lock_guard lock(mutex_);
  free_.push_back(Unscramble(stag.value >> 8));
}

int MemoryTable::CheckRegion(uint64_t address, uint64_t length, uint64_t offset, int access) {
  if (access & ~(kKnownAccess | IBV_ACCESS_OPTIONAL_RANGE)) return EINVAL;
  const bool local_write = access & IBV_ACCESS_LOCAL_WRITE;
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !local_write) return EINVAL;
  const bool on_demand = access & IBV_ACCESS_ON_DEMAND;
  const bool implicit = on_demand && address == 0 && length == SIZE_MAX && offset == 0;
  if (!implicit && (length > kMaxMrSize || address + length < address || offset + length < offset)) return EINVAL;
  return on_demand ? 0 : PopulatePages(address, length, local_write);
}

Result<RegionInfo, int> MemoryTable::Register(Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access) {
  if (access & IBV_ACCESS_ZERO_BASED) offset = 0;
  if (int error = CheckRegion(address, length, offset, access)) return error;
  Slot* slot = TakeSlot();
  if (slot == nullptr) return ENOMEM;
  std::lock_guard lock(*slot);
  slot->kind = Kind::kRegion;
  slot->pd = pd.id;
  slot->windows = 0;
  slot->info = {slot->stag(), address, offset, length, access};
  slot->live = slot->valid = true;
  return slot->info;
}

void MemoryTable::Tell(RegionInfo* was, const Slot& slot) {
  if (was == nullptr) return;
  *was = slot.info;
  was->stag = slot.stag();
  was->owner = slot.kind == Kind::kWindow2 ? slot.owner : kNoWindowOwner;
  if (!slot.valid || slot.kind == Kind::kNull) was->length = 0;
}

Result<RegionInfo, int> MemoryTable::Reregister(ddp::STag stag, Pd& pd, uint64_t address, uint64_t length, uint64_t offset,
                                                int access, RegionInfo* was) {
  if (access & IBV_ACCESS_ZERO_BASED) offset = 0;
  if (int error = CheckRegion(address, length, offset, access)) return error;
  Slot* slot = Find(stag);
  if (slot == nullptr) return ENOENT;
  std::lock_guard windows(windows_mutex_);
  std::lock_guard lock(*slot);
  if (!slot->live || slot->kind != Kind::kRegion || slot->stag() != stag) return ENOENT;
  if (slot->windows != 0) return EBUSY;
  Tell(was, *slot);
  slot->pd = pd.id;
  slot->info = {stag, address, offset, length, access};
  slot->valid = true;
  changes_.fetch_add(1, std::memory_order_release);
  return slot->info;
}

Result<RegionInfo, int> MemoryTable::RegisterNull(Pd& pd) {
  if (!NullMemory::Process().available()) return ENOMEM;
  Slot* slot = TakeSlot();
  if (slot == nullptr) return ENOMEM;
  std::lock_guard lock(*slot);
  slot->kind = Kind::kNull;
  slot->pd = pd.id;
  slot->windows = 0;
  slot->info = {slot->stag(), 0, 0, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE};
  slot->live = slot->valid = true;
  return slot->info;
}

int MemoryTable::Deregister(ddp::STag stag, RegionInfo* was) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return ENOENT;
  {
    std::lock_guard windows(windows_mutex_);
    std::lock_guard lock(*slot);
    if (!slot->live || IsWindow(slot->kind) || slot->stag() != stag) return ENOENT;
    if (slot->windows != 0) return EBUSY;
    Tell(was, *slot);
    slot->live = slot->valid = false;
    changes_.fetch_add(1, std::memory_order_release);
  }
  ReturnSlot(stag);
  return 0;
}

std::optional<RegionInfo> MemoryTable::Find(const Pd& pd, uint32_t lkey) {
  Slot* slot = Find(ddp::STag(lkey));
  if (slot == nullptr) return std::nullopt;
  std::lock_guard lock(*slot);
  if (!slot->valid || slot->kind != Kind::kRegion || slot->stag().value != lkey || slot->pd != pd.id) return std::nullopt;
  return slot->info;
}

Result<uint8_t*, rdmap::AccessError> MemoryTable::Locate(const RegionInfo& info, uint64_t offset, uint32_t length, int access) {
  if ((info.access & access) != access) return rdmap::AccessError::kAccessRights;
  if (offset + length < offset) return rdmap::AccessError::kOffsetWrap;
  if (offset < info.offset || offset + length > info.offset + info.length) return rdmap::AccessError::kBounds;
  const uint64_t address = info.address + (offset - info.offset);
  if (info.access & IBV_ACCESS_ON_DEMAND) [[unlikely]] {
    if (PopulatePages(address, length, access & kWrites) != 0) return rdmap::AccessError::kBounds;
  }
  return reinterpret_cast<uint8_t*>(address);
}

Result<uint8_t*, rdmap::AccessError> MemoryTable::ResolveRemote(const Pd& pd, ddp::STag stag, uint64_t offset, uint32_t length,
                                                                int access, const MemoryUser& who, ddp::STag* region) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return rdmap::AccessError::kInvalidStag;
  slot->lock();
  const bool valid = slot->valid && slot->key == (stag.value & 0xff) && slot->kind != Kind::kNull;
  const bool associated = slot->pd == pd.id && (slot->kind != Kind::kWindow2 || slot->owner == who.owner);
  if (region != nullptr) *region = IsWindow(slot->kind) ? slot->region : stag;
  slot->info.users |= who.as;
  const RegionInfo info = slot->info;
  slot->unlock();
  if (!valid) return rdmap::AccessError::kInvalidStag;
  if (!associated) return rdmap::AccessError::kStagNotAssociated;
  return Locate(info, offset, length, access);
}

std::optional<RegionInfo> MemoryTable::FindOpen(const Pd& pd, ddp::STag stag, const MemoryUser& who) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return std::nullopt;
  std::lock_guard lock(*slot);
  if (!slot->valid || slot->kind != Kind::kRegion || slot->stag() != stag || slot->pd != pd.id) return std::nullopt;
  if (slot->info.access & IBV_ACCESS_ON_DEMAND) return std::nullopt;
  slot->info.users |= who.as;
  return slot->info;
}

uint8_t* MemoryTable::ResolveLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write,
                                   bool remote_write, const MemoryUser& who) {
  Slot* slot = Find(ddp::STag(lkey));
  if (slot == nullptr) return nullptr;
  slot->lock();
  const Kind kind = slot->kind;
  const bool valid = slot->valid && slot->key == (lkey & 0xff) && slot->pd == pd.id && !IsWindow(kind);
  slot->info.users |= who.as;
  const RegionInfo info = slot->info;
  slot->unlock();
  if (!valid) return nullptr;
  if (kind == Kind::kNull) [[unlikely]] {
    return remote_write || length > kMaxMessage ? nullptr : NullMemory::Process().Bytes(write);
  }
  const int access = (write ? IBV_ACCESS_LOCAL_WRITE : 0) | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0);
  auto memory = Locate(info, address, length, access);
  return memory.ok() ? *memory : nullptr;
}

std::optional<RegionInfo> MemoryTable::FindLocal(const Pd& pd, uint32_t lkey, const MemoryUser& who) {
  Slot* slot = Find(ddp::STag(lkey));
  if (slot == nullptr) return std::nullopt;
  std::lock_guard lock(*slot);
  if (!slot->valid || slot->kind != Kind::kRegion || slot->stag().value != lkey || slot->pd != pd.id) return std::nullopt;
  slot->info.users |= who.as;
  return slot->info;
}

std::string MemoryTable::ExplainLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write) {
  if (ResolveLocal(pd, lkey, address, length, write, remote_write) != nullptr) return {};
  Slot* slot = Find(ddp::STag(lkey));
  if (slot == nullptr) return "there is no region with this key";
  Kind kind;
  bool known, valid, here;
  RegionInfo info;
  {
    std::lock_guard lock(*slot);
    kind = slot->kind;
    known = slot->live && slot->key == (lkey & 0xff);
    valid = slot->valid;
    here = slot->pd == pd.id;
    info = slot->info;
  }
  if (!known) return "there is no region with this key, or no longer";
  if (IsWindow(kind)) return "this is the key of a memory window, which only peers can use";
  if (!valid) return "the region was invalidated";
  if (!here) return "the region belongs to another protection domain";
  if (write && !(info.access & IBV_ACCESS_LOCAL_WRITE)) return "the region was registered without IBV_ACCESS_LOCAL_WRITE";
  if (remote_write && !(info.access & IBV_ACCESS_REMOTE_WRITE)) {
    return "the region was registered without IBV_ACCESS_REMOTE_WRITE, which the sink of an RDMA Read needs on iWARP";
  }
  return Format("the region has %llu bytes from 0x%llx on", static_cast<unsigned long long>(info.length),
                static_cast<unsigned long long>(info.offset));
}

bool MemoryTable::Invalidate(const Pd& pd, ddp::STag stag, WindowOwner owner, RegionInfo* was) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return false;
  std::lock_guard windows(windows_mutex_);
  ddp::STag left;
  MemoryUsers users;
  {
    std::lock_guard lock(*slot);
    if (!slot->valid || slot->stag() != stag || slot->pd != pd.id || slot->windows != 0) return false;
    if (slot->kind == Kind::kWindow1 || slot->kind == Kind::kNull) return false;
    if (slot->kind == Kind::kWindow2 && slot->owner != owner) return false;
    Tell(was, *slot);
    slot->valid = false;
    if (slot->kind == Kind::kRegion) {
      changes_.fetch_add(1, std::memory_order_release);
      return true;
    }
    left = slot->region;
    users = slot->info.users;
  }
  LeaveRegion(left, users);
  return true;
}

std::optional<rdmap::AccessError> MemoryTable::InvalidateForPeer(const Pd& pd, ddp::STag stag, WindowOwner owner, RegionInfo* was) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return rdmap::AccessError::kInvalidStag;
  std::lock_guard windows(windows_mutex_);
  ddp::STag left;
  MemoryUsers users;
  {
    std::lock_guard lock(*slot);
    if (!slot->valid || slot->stag() != stag || slot->kind == Kind::kNull) return rdmap::AccessError::kInvalidStag;
    if (slot->pd != pd.id) return rdmap::AccessError::kStagNotAssociated;
    if (slot->kind != Kind::kWindow2) return rdmap::AccessError::kAccessRights;
    if (slot->owner != owner) return rdmap::AccessError::kStagNotAssociated;
    Tell(was, *slot);
    slot->valid = false;
    left = slot->region;
    users = slot->info.users;
  }
  LeaveRegion(left, users);
  return std::nullopt;
}

// Windows: STags that open a part of a region to peers, and are given and taken in the order of a send queue.

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
