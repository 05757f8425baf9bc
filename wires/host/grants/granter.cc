#include "wires/host/grants/granter.h"

#include <sched.h>

namespace weft::host {
namespace {

bool Overlaps(const llp::TaggedBuffer& buffer, const void* begin, size_t length) {
  const auto first = reinterpret_cast<uintptr_t>(buffer.memory), from = reinterpret_cast<uintptr_t>(begin);
  return first < from ? from - first < buffer.length : first - from < length;
}

}  // namespace

bool Granter::Open(const llp::TaggedBuffer& buffer) {
  const size_t number = GrantOf(buffer.tag);
  if (buffer.length == 0) return true;
  if (open_[number].length != 0 && !ShutGrant(number)) return false;
  Grant& grant = words_.grants[number];
  grant.offset.store(buffer.offset, std::memory_order_relaxed);
  grant.memory.store(reinterpret_cast<uintptr_t>(buffer.memory), std::memory_order_relaxed);
  grant.length.store(buffer.length, std::memory_order_relaxed);
  grant.rights.store((buffer.writable ? kWritable : 0) | (buffer.readable ? kReadable : 0), std::memory_order_relaxed);
  grant.key.store(KeyOf(buffer.tag), std::memory_order_release);
  open_[number] = buffer;
  ++count_;
  return true;
}

bool Granter::Shut(const void* begin, size_t length) {
  bool well = true;
  for (size_t i = 0; i < kGrants && count_ != 0; ++i) {
    if (open_[i].length != 0 && Overlaps(open_[i], begin, length)) well &= ShutGrant(i);
  }
  return well;
}

bool Granter::ShutAll() {
  bool well = true;
  for (size_t i = 0; i < kGrants && count_ != 0; ++i) {
    if (open_[i].length != 0) well &= ShutGrant(i);
  }
  return well;
}

// The peer says by which grant it will place, and then looks whether it is open; we shut it, and then look whether the peer says so: one of
// the two sees the other.
bool Granter::ShutGrant(size_t number) {
  open_[number] = {};
  --count_;
  words_.grants[number].key.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (words_.placing.load(std::memory_order_acquire) != number + 1) [[likely]] return true;
  const auto until = std::chrono::steady_clock::now() + kLimit;
  while (words_.placing.load(std::memory_order_acquire) == number + 1) {
    if (std::chrono::steady_clock::now() > until) return false;
    sched_yield();
  }
  return true;
}

}  // namespace weft::host
