#include "sim/memory.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "sim/device.h"

namespace weft::sim {
namespace {

constexpr uint32_t kIndexBits = 24;
constexpr uint32_t kHalfBits = kIndexBits / 2;
constexpr uint32_t kHalfMask = (1u << kHalfBits) - 1;
constexpr size_t kFreeBeforeReuse = 64;  // freed slots wait at least this long in line

constexpr int kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                             IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;
#endif
#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif

uint32_t RoundFunction(uint32_t half, uint32_t key) {
  uint32_t x = (half ^ key) * 0x9e3779b1u;
  return (x ^ (x >> 15)) & kHalfMask;
}

bool IsMapped(uintptr_t first, size_t length) {
  unsigned char residency[256];
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  while (length > 0) {
    const size_t chunk = std::min(length, sizeof residency * page);
    if (mincore(reinterpret_cast<void*>(first), chunk, residency) != 0) return false;
    first += chunk;
    length -= chunk;
  }
  return true;
}

// What pinning does on hardware: brings the pages in, and finds out that they are there and may be used as asked.
int Populate(uint64_t address, uint64_t length, bool write) {
  if (length == 0) return 0;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = address & ~(page - 1);
  const uint64_t bytes = ((address + length + page - 1) & ~(page - 1)) - first;
  if (madvise(reinterpret_cast<void*>(first), bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) return 0;
  if (errno == ENOMEM || errno == EFAULT || errno == EHWPOISON) return EFAULT;
  // EINVAL: a kernel before 5.14, or a mapping that cannot be populated (device memory, or not permitted). Only existence
  // can be told then; permission of ordinary memory is refused by the first case on newer kernels.
  const int error = errno;
  if (!IsMapped(first, bytes)) return EFAULT;
  return error == EINVAL && write ? (madvise(reinterpret_cast<void*>(first), bytes, MADV_POPULATE_READ) == 0 ? EFAULT : 0)
                                  : 0;
}

}  // namespace

// Guarded by `lock`, a spin lock held for a few instructions; slots are never freed, so a stale STag finds a slot that does
// not match.
struct MemoryTable::Slot {
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  bool live = false;
  bool valid = false;        // false: invalidated
  uint8_t key = 0;
  uint32_t pd = 0;
  RegionInfo info;

  void Lock() {
    while (lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  void Unlock() { lock.clear(std::memory_order_release); }
};

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

Result<RegionInfo, int> MemoryTable::Register(Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access) {
  if (access & ~(kKnownAccess | IBV_ACCESS_OPTIONAL_RANGE)) return EINVAL;
  const bool local_write = access & IBV_ACCESS_LOCAL_WRITE;
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !local_write) return EINVAL;
  if (access & IBV_ACCESS_ZERO_BASED) offset = 0;
  if (length > kMaxMrSize || address + length < address || offset + length < offset) return EINVAL;
  if (int error = Populate(address, length, local_write)) return error;

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
        return ENOMEM;
      }
      auto& chunk = chunks_[number / kSlotsPerChunk];
      if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Slot[kSlotsPerChunk], std::memory_order_release);
    }
  }
  Slot& slot = chunks_[number / kSlotsPerChunk].load(std::memory_order_acquire)[number % kSlotsPerChunk];
  uint8_t step = 0;
  [[maybe_unused]] ssize_t got = getrandom(&step, 1, 0);
  slot.Lock();
  slot.key = static_cast<uint8_t>(slot.key + 1 + step % 255);  // never the key that it had last
  slot.pd = pd.id;
  slot.info = {ddp::STag(Scramble(number) << 8 | slot.key), address, offset, length, access};
  slot.live = slot.valid = true;
  RegionInfo info = slot.info;
  slot.Unlock();
  return info;
}

bool MemoryTable::Deregister(ddp::STag stag) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return false;
  slot->Lock();
  const bool known = slot->live && slot->key == (stag.value & 0xff);
  if (known) slot->live = slot->valid = false;
  slot->Unlock();
  if (!known) return false;
  std::lock_guard lock(mutex_);
  free_.push_back(Unscramble(stag.value >> 8));
  return true;
}

Result<uint8_t*, rdmap::AccessError> MemoryTable::ResolveRemote(const Pd& pd, ddp::STag stag, uint64_t offset,
                                                                uint32_t length, int access) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return rdmap::AccessError::kInvalidStag;
  slot->Lock();
  const bool valid = slot->valid && slot->key == (stag.value & 0xff);
  const uint32_t owner = slot->pd;
  const RegionInfo info = slot->info;
  slot->Unlock();
  if (!valid) return rdmap::AccessError::kInvalidStag;
  if (owner != pd.id) return rdmap::AccessError::kStagNotAssociated;
  if ((info.access & access) != access) return rdmap::AccessError::kAccessRights;
  if (offset + length < offset) return rdmap::AccessError::kOffsetWrap;
  if (offset < info.offset || offset + length > info.offset + info.length) return rdmap::AccessError::kBounds;
  return reinterpret_cast<uint8_t*>(info.address + (offset - info.offset));
}

uint8_t* MemoryTable::ResolveLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write,
                                   bool remote_write) {
  const int access = (write ? IBV_ACCESS_LOCAL_WRITE : 0) | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0);
  auto memory = ResolveRemote(pd, ddp::STag(lkey), address, length, access);
  return memory.ok() ? *memory : nullptr;
}

bool MemoryTable::Invalidate(const Pd& pd, ddp::STag stag) {
  Slot* slot = Find(stag);
  if (slot == nullptr) return false;
  slot->Lock();
  const bool known = slot->valid && slot->key == (stag.value & 0xff) && slot->pd == pd.id;
  if (known) slot->valid = false;
  slot->Unlock();
  return known;
}

}  // namespace weft::sim
