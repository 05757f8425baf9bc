#include "wires/host/grants/placer.h"

#include <atomic>
#include <cerrno>

namespace weft::host {
namespace {

// Where the `length` bytes lie in the owner's memory; 0: not within the grant.
uint64_t Locate(const Grant& grant, uint64_t offset, size_t length) {
  const uint64_t first = grant.offset.load(std::memory_order_relaxed), memory = grant.memory.load(std::memory_order_relaxed);
  const uint64_t room = grant.length.load(std::memory_order_relaxed);
  if (offset < first || offset - first > room || room - (offset - first) < length) return 0;
  return memory + (offset - first);
}

// kGrants: there is no grant with that key.
size_t Find(const GrantWords& words, uint64_t key) {
  const size_t home = HomeOf(static_cast<uint32_t>(key));
  if (words.keys[home].load(std::memory_order_relaxed) == key) [[likely]] return home;
  for (size_t place = NextPlace(home); place != home; place = NextPlace(place)) {
    if (words.keys[place].load(std::memory_order_relaxed) == key) return place;
  }
  return kGrants;
}

}  // namespace

template <typename Access>
bool Placer::Reach(uint32_t tag, uint64_t offset, size_t length, uint32_t right, Access access) {
  if (!reaches_ || length == 0) return false;
  const uint64_t key = KeyOf(tag);
  const size_t place = Find(words_, key);
  if (place == kGrants) return false;
  const Grant& grant = words_.grants[place];
  words_.placing.store(InUse(place, right == kReadable), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool done = false;
  if (words_.keys[place].load(std::memory_order_acquire) == key && grant.rights.load(std::memory_order_relaxed) & right) {
    if (const uint64_t address = Locate(grant, offset, length); address != 0) {
      const int error = access(Piece{address, length});
      done = error == 0;
      if (error != 0 && error != EFAULT) reaches_ = false;  // EFAULT: of this memory; the owner finds out
    }
  }
  // What was read of a buffer that was shut meanwhile may be what its owner put there for nobody to see. Pairs with the fence in
  // Granter::ShutPlace, behind which the owner writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (right == kReadable) done &= words_.keys[place].load(std::memory_order_relaxed) == key;
  words_.placing.store(0, std::memory_order_release);
  return done;
}

bool Placer::Place(const llp::TaggedPlacement& to, std::span<const iovec> payload, size_t length) {
  if (payload.size() > kMostPieces) return false;
  return Reach(to.tag, to.offset, length, kWritable, [&](const Piece& piece) { return memory_.Write(payload, piece); });
}

bool Placer::Fetch(uint32_t tag, uint64_t offset, std::span<const iovec> to, size_t length) {
  if (to.size() > kMostPieces) return false;
  return Reach(tag, offset, length, kReadable, [&](const Piece& piece) { return memory_.Read(to, {&piece, 1}, length); });
}

}  // namespace weft::host
