#include "transport/watch_table.h"

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace weft::transport {
namespace {

uint32_t NumberOf(WatchId id) { return static_cast<uint32_t>(id); }
uint32_t GenerationOf(WatchId id) { return static_cast<uint32_t>(id >> 32); }
WatchId IdOf(uint32_t number, uint32_t generation) { return uint64_t{generation} << 32 | number; }

}  // namespace

WatchTable::~WatchTable() {
  for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

WatchTable::Slot* WatchTable::SlotOf(WatchId id) const {
  if (GenerationOf(id) == 0) return nullptr;
  uint32_t number = NumberOf(id);
  if (number >= kChunkSlots * kMostChunks) return nullptr;
  Slot* chunk = chunks_[number / kChunkSlots].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : chunk + number % kChunkSlots;
}

uint32_t WatchTable::TakeFreeSlot() {
  std::lock_guard lock(free_mutex_);
  if (!free_.empty()) {
    uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  if (used_ == kChunkSlots * kMostChunks) return kNoSlot;
  if (used_ % kChunkSlots == 0) chunks_[used_ / kChunkSlots].store(new Slot[kChunkSlots], std::memory_order_release);
  return used_++;
}

Result<WatchId, int> WatchTable::Add(int fd, Interest interest, std::shared_ptr<ReadyHandler> handler,
                                     TcpListener::Starved starved) {
  WEFT_CHECK(fd >= 0 && handler != nullptr);
  uint32_t number = TakeFreeSlot();
  if (number == kNoSlot) return ENOSPC;
  Slot& slot = chunks_[number / kChunkSlots].load(std::memory_order_acquire)[number % kChunkSlots];
  int error;
  {
    std::lock_guard lock(slot.mutex);
    if (++slot.generation == 0) slot.generation = 1;
    WatchId id = IdOf(number, slot.generation);
    error = epoll_.Add(fd, interest, id);
    WEFT_CHECK(error != EEXIST);  // one watch per descriptor
    if (error == 0) {
      slot.fd = fd;
      slot.interest = interest;
      slot.handler = std::move(handler);
      slot.starved = std::move(starved);
      return id;
    }
  }
  std::lock_guard lock(free_mutex_);
  free_.push_back(number);
  return error;
}

void WatchTable::SetInterest(WatchId id, Interest interest) {
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return;
  std::lock_guard lock(slot->mutex);
  if (slot->generation != GenerationOf(id) || slot->handler == nullptr || slot->interest == interest) return;
  if (slot->lent.load(std::memory_order_relaxed)) {
    slot->interest = interest;
    return;
  }
  int error = epoll_.Modify(slot->fd, interest, id);
  WEFT_CHECK(error == 0 || error == ENOMEM);
  if (error == 0) slot->interest = interest;
}

void WatchTable::Remove(WatchId id) {
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return;
  std::shared_ptr<ReadyHandler> handler;  // destroyed after the locks are released
  {
    std::lock_guard lock(slot->mutex);
    if (slot->generation != GenerationOf(id) || slot->handler == nullptr) return;
    handler = std::move(slot->handler);
    slot->handler = nullptr;
    slot->starved = nullptr;
    int fd = std::exchange(slot->fd, -1);
    if (!slot->lent.exchange(false, std::memory_order_relaxed)) epoll_.Remove(fd);
  }
  std::lock_guard lock(free_mutex_);
  free_.push_back(NumberOf(id));
}

WatchTable::Hit WatchTable::Find(WatchId id) {
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return {};
  std::lock_guard lock(slot->mutex);
  if (slot->generation != GenerationOf(id)) return {};
  return {slot->handler, slot->interest, slot->starved};
}

void WatchTable::Lend(WatchId id) {
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return;
  slot->lent_again.store(slot->lent_again.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (slot->lent.load(std::memory_order_relaxed)) return;

  std::lock_guard lending(lent_mutex_);
  if (!lending_) return;
  std::lock_guard lock(slot->mutex);
  if (slot->generation != GenerationOf(id) || slot->handler == nullptr || slot->lent.load(std::memory_order_relaxed)) return;
  epoll_.Remove(slot->fd);
  slot->lent.store(true, std::memory_order_relaxed);
  if (!std::exchange(slot->listed, true)) lent_.push_back(NumberOf(id));
}

bool WatchTable::PutBack(Slot& slot, WatchId id) {
  if (!slot.lent.load(std::memory_order_relaxed)) return true;
  if (epoll_.Add(slot.fd, slot.interest, id) != 0) return false;
  slot.lent.store(false, std::memory_order_relaxed);
  return true;
}

void WatchTable::OpenLending() {
  std::lock_guard lending(lent_mutex_);
  lending_ = true;
}

bool WatchTable::CloseLending() {
  {
    std::lock_guard lending(lent_mutex_);
    lending_ = false;
  }
  return ReclaimLent(/*idle_only=*/false);
}

bool WatchTable::ReclaimLent(bool idle_only) {
  std::lock_guard lending(lent_mutex_);
  std::erase_if(lent_, [&](uint32_t number) {
    Slot& slot = chunks_[number / kChunkSlots].load(std::memory_order_relaxed)[number % kChunkSlots];
    std::lock_guard lock(slot.mutex);
    const uint32_t lent_again = slot.lent_again.load(std::memory_order_relaxed);
    const bool in_use = std::exchange(slot.lent_before, lent_again) != lent_again;
    const bool stays = slot.lent.load(std::memory_order_relaxed) &&
                       ((idle_only && in_use) || !PutBack(slot, IdOf(number, slot.generation)));
    slot.listed = stays;
    return !stays;
  });
  return lent_.empty();
}

}  // namespace weft::transport
