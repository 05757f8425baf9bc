#include "transport/watch_table.h"

#include <algorithm>
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
  return Add(fd, interest, std::move(handler), std::move(starved), /*stays=*/false);
}

Result<WatchId, int> WatchTable::AddGroup(const Group& group, std::shared_ptr<ReadyHandler> handler) {
  return Add(group.set.fd(), {.read = true}, std::move(handler), nullptr, /*stays=*/true);
}

Result<WatchId, int> WatchTable::Add(int fd, Interest interest, std::shared_ptr<ReadyHandler> handler, TcpListener::Starved starved,
                                     bool stays) {
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
      slot.stays = stays;
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
  int error = slot->groups.empty() ? epoll_.Modify(slot->fd, interest, id) : 0;
  for (const auto& group : slot->groups) {
    if (error == 0) error = group->set.Modify(slot->fd, interest, id);
  }
  WEFT_CHECK(error == 0 || error == ENOMEM);
  if (error == 0) slot->interest = interest;
}

void WatchTable::Remove(WatchId id) {
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return;
  std::shared_ptr<ReadyHandler> handler;  // destroyed after the locks are released
  std::vector<std::shared_ptr<Group>> groups;
  {
    std::lock_guard lock(slot->mutex);
    if (slot->generation != GenerationOf(id) || slot->handler == nullptr) return;
    handler = std::move(slot->handler);
    slot->handler = nullptr;
    slot->starved = nullptr;
    int fd = std::exchange(slot->fd, -1);
    const bool in_epoll = !slot->lent.exchange(false, std::memory_order_relaxed) || slot->stays;
    groups.swap(slot->groups);
    if (groups.empty() && in_epoll) epoll_.Remove(fd);
    for (const auto& group : groups) {
      group->set.Remove(fd);
      group->members.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  std::lock_guard lock(free_mutex_);
  free_.push_back(NumberOf(id));
}

WatchTable::Hit WatchTable::Find(const epoll_event& event) {
  const WatchId id = event.data.u64;
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return {};
  std::lock_guard lock(slot->mutex);
  if (slot->generation != GenerationOf(id)) return {};
  // What the watcher wants now: it may have changed its mind since epoll_wait returned.
  Interest ready = EpollSet::ReadyOf(event.events);
  ready.read = ready.read && slot->interest.read;
  ready.write = ready.write && slot->interest.write;
  if (ready == Interest{}) return {};
  return {slot->handler, ready, slot->starved};
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
  if (!slot->groups.empty()) return;
  if (slot->stays) {
    if (epoll_.Modify(slot->fd, {}, id) != 0) return;
  } else {
    epoll_.Remove(slot->fd);
  }
  slot->lent.store(true, std::memory_order_relaxed);
  if (!std::exchange(slot->listed, true)) lent_.push_back(NumberOf(id));
}

bool WatchTable::PutBack(Slot& slot, WatchId id) {
  if (!slot.lent.load(std::memory_order_relaxed)) return true;
  if ((slot.stays ? epoll_.Modify(slot.fd, slot.interest, id) : epoll_.Add(slot.fd, slot.interest, id)) != 0) return false;
  slot.lent.store(false, std::memory_order_relaxed);
  return true;
}

int WatchTable::Join(WatchId id, const std::shared_ptr<Group>& group) {
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return ENOENT;
  std::lock_guard lock(slot->mutex);
  if (slot->generation != GenerationOf(id) || slot->handler == nullptr) return ENOENT;
  if (std::find(slot->groups.begin(), slot->groups.end(), group) != slot->groups.end()) return 0;
  if (int error = group->set.Add(slot->fd, slot->interest, id); error != 0) return error;
  // A lent one is not in epoll and need not come back: whoever reclaims what is lent finds that it is not.
  if (slot->groups.empty() && !slot->lent.exchange(false, std::memory_order_relaxed)) epoll_.Remove(slot->fd);
  slot->groups.push_back(group);
  group->members.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

void WatchTable::Dissolve(const std::shared_ptr<Group>& group) {
  if (group->members.load(std::memory_order_relaxed) == 0) return;
  uint32_t used;
  {
    std::lock_guard lock(free_mutex_);
    used = used_;
  }
  std::lock_guard lending(lent_mutex_);
  for (uint32_t number = 0; number < used; ++number) {
    Slot& slot = chunks_[number / kChunkSlots].load(std::memory_order_acquire)[number % kChunkSlots];
    std::lock_guard lock(slot.mutex);
    if (std::erase(slot.groups, group) == 0) continue;
    group->set.Remove(slot.fd);
    group->members.fetch_sub(1, std::memory_order_relaxed);
    if (!slot.groups.empty()) continue;
    // As if it had been lent, so that it is tried again where epoll has no memory for it now.
    slot.lent.store(true, std::memory_order_relaxed);
    if (!PutBack(slot, IdOf(number, slot.generation)) && !std::exchange(slot.listed, true)) lent_.push_back(number);
  }
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
