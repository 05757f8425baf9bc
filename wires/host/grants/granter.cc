#include "wires/host/grants/granter.h"

#include <utility>

namespace weft::host {
namespace {

bool Overlaps(const llp::TaggedBuffer& buffer, const void* begin, size_t length) {
  const auto first = reinterpret_cast<uintptr_t>(buffer.memory), from = reinterpret_cast<uintptr_t>(begin);
  return first < from ? from - first < buffer.length : first - from < length;
}

}  // namespace

size_t Granter::PlaceOf(uint32_t tag) const {
  if (count_ == 0) return kGrants;
  for (size_t place = 0; place < kGrants; ++place) {
    if (IsAt(place, tag)) return place;
  }
  return kGrants;
}

bool Granter::IsFree(size_t place) {
  if (open_[place].length != 0) return false;
  std::lock_guard lock(mutex_);
  if (leaving_[place].length != 0 && IsInUse(words_.placing.load(std::memory_order_acquire), place)) return false;
  leaving_[place] = {};
  return true;
}

size_t Granter::FreePlaceFor(uint32_t tag) {
  const size_t home = HomeOf(tag);
  size_t place = home;
  do {
    if (IsFree(place)) return place;
    place = NextPlace(place);
  } while (place != home);
  // In turn, so that no buffer is always the one.
  for (size_t tried = 0; tried < kGrants; ++tried) {
    place = next_to_give_up_;
    next_to_give_up_ = NextPlace(place);
    if (open_[place].length != 0) ShutPlace(place);
    if (IsFree(place)) return place;
  }
  return kGrants;
}

bool Granter::Open(const llp::TaggedBuffer& buffer) {
  if (buffer.length == 0) return true;
  size_t place = PlaceOf(buffer.tag);
  if (place != kGrants) ShutPlace(place);
  if (place == kGrants || !IsFree(place)) place = FreePlaceFor(buffer.tag);
  if (place == kGrants) return false;
  Grant& grant = words_.grants[place];
  grant.offset.store(buffer.offset, std::memory_order_relaxed);
  grant.memory.store(reinterpret_cast<uintptr_t>(buffer.memory), std::memory_order_relaxed);
  grant.length.store(buffer.length, std::memory_order_relaxed);
  grant.rights.store((buffer.writable ? kWritable : 0) | (buffer.readable ? kReadable : 0), std::memory_order_relaxed);
  words_.keys[place].store(KeyOf(buffer.tag), std::memory_order_release);
  open_[place] = buffer;
  ++count_;
  return true;
}

void Granter::Shut(const void* begin, size_t length) {
  for (size_t place = 0; place < kGrants && count_ != 0; ++place) {
    if (open_[place].length != 0 && Overlaps(open_[place], begin, length)) ShutPlace(place);
  }
}

void Granter::ShutAll() {
  for (size_t place = 0; place < kGrants && count_ != 0; ++place) {
    if (open_[place].length != 0) ShutPlace(place);
  }
}

// The peer says by which grant it will place, and then looks whether it is open; we shut it, and then look whether the peer says so: one of
// the two sees the other.
void Granter::ShutPlace(size_t place) {
  const llp::TaggedBuffer was = std::exchange(open_[place], {});
  --count_;
  words_.keys[place].store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!IsInUse(words_.placing.load(std::memory_order_acquire), place)) [[likely]] return;
  std::lock_guard lock(mutex_);
  leaving_[place] = was;
}

bool Granter::Settled(const void* begin, size_t length) {
  std::lock_guard lock(mutex_);
  for (size_t place = 0; place < kGrants; ++place) {
    llp::TaggedBuffer& leaving = leaving_[place];
    if (leaving.length == 0) continue;
    const uint32_t placing = words_.placing.load(std::memory_order_acquire);
    if (!IsInUse(placing, place)) {
      leaving = {};
    } else if ((placing & kReads) == 0 && Overlaps(leaving, begin, length)) {
      return false;
    }
  }
  return true;
}

}  // namespace weft::host
