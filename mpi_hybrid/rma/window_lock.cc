#include "mpi_hybrid/rma/window_lock.h"

namespace weft::mpi::rma {
namespace {

// Of ControlBlock::waiting.
constexpr uint8_t kWaitsToShare = 1, kWaitsForAll = 2;

}  // namespace

// What a rank says of itself and what it then reads of the others are in one order for all (sequentially consistent),
// so that of two ranks that say something at the same time at least one sees the other.

bool WindowLock::TryShared(int rank, bool overtakes) const {
  std::atomic<uint8_t>& mine = control_.readers[rank];
  mine.store(1);
  if (MayShare(overtakes)) [[likely]]
    return true;
  mine.store(0);
  return false;
}

bool WindowLock::TryExclusive(int rank, bool stay) const {
  const uint32_t me = static_cast<uint32_t>(rank) + 1;
  std::atomic<uint32_t>& writer = control_.head->writer;
  uint32_t found = 0;
  if (!writer.compare_exchange_strong(found, me)) {
    if (found != (me | ControlHead::kPromised) || !writer.compare_exchange_strong(found, me)) return false;
  }
  // From here on who comes to share it backs off, and who did not is seen.
  if (!AnyoneShares()) [[likely]]
    return true;
  writer.store(stay ? me | ControlHead::kPromised : 0);
  return false;
}

bool WindowLock::MayShare(bool overtakes) const {
  const uint32_t writer = control_.head->writer.load();
  return writer == 0 || (overtakes && (writer & ControlHead::kPromised) != 0);
}

bool WindowLock::MayTakeExclusive(int rank) const {
  const uint32_t writer = control_.head->writer.load();
  if (writer == 0) return true;
  return writer == ((static_cast<uint32_t>(rank) + 1) | ControlHead::kPromised) && !AnyoneShares();
}

bool WindowLock::Release(int rank) const {
  const bool shared = control_.readers[rank].load(std::memory_order_relaxed) != 0;
  if (shared) control_.readers[rank].store(0);
  uint32_t found = control_.head->writer.load(std::memory_order_relaxed);
  if ((found & ~ControlHead::kPromised) != static_cast<uint32_t>(rank) + 1) return shared;
  control_.head->writer.compare_exchange_strong(found, WriterAfter(rank));
  return true;
}

void WindowLock::Forget(int rank) const {
  if (control_.waiting[rank].exchange(0) != 0) control_.head->waiters.fetch_sub(1);
  (void)Release(rank);
}

uint32_t WindowLock::WriterAfter(int rank) const {
  if (control_.head->waiters.load() == 0) [[likely]]
    return 0;
  for (int i = 1; i < control_.ranks; ++i) {
    const int next = (rank + i) % control_.ranks;
    const uint8_t wish = control_.waiting[next].load();
    if (wish != 0) return wish == kWaitsForAll ? (static_cast<uint32_t>(next) + 1) | ControlHead::kPromised : 0;
  }
  return 0;
}

void WindowLock::StartWaiting(int rank, bool exclusive) const {
  control_.waiting[rank].store(exclusive ? kWaitsForAll : kWaitsToShare);
  control_.head->waiters.fetch_add(1);
}

void WindowLock::StopWaiting(int rank) const {
  control_.waiting[rank].store(0);
  control_.head->waiters.fetch_sub(1);
}

bool WindowLock::AnyoneShares() const {
  for (int rank = 0; rank < control_.ranks; ++rank) {
    if (control_.readers[rank].load() != 0) return true;
  }
  return false;
}

int WindowLock::Holder(int rank) const {
  uint32_t writer = control_.head->writer.load();
  const uint32_t who = writer & ~ControlHead::kPromised;
  if (writer != 0 && (who == 0 || who > static_cast<uint32_t>(control_.ranks))) {
    control_.head->writer.compare_exchange_strong(writer, 0);
  } else if (writer != 0 && who != static_cast<uint32_t>(rank) + 1) {
    return static_cast<int>(who - 1);
  }
  for (int other = 0; other < control_.ranks; ++other) {
    if (other != rank && control_.readers[other].load() != 0) return other;
  }
  return -1;
}

}  // namespace weft::mpi::rma
