#include "mpi_hybrid/rma/target_window.h"

#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "mpi_hybrid/core/pause.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi::rma {

const TargetWindow::Region* TargetWindow::RegionOf(uint64_t address, uint64_t bytes) const {
  for (const Region& region : regions) {
    const uint64_t first = reinterpret_cast<uintptr_t>(region.base);
    if (address >= first && bytes <= region.size && address - first <= region.size - bytes) return &region;
  }
  return nullptr;
}

bool TargetWindow::Attached(uint64_t address, uint64_t bytes) const {
  while (true) {
    const Region* region = RegionOf(address, 1);
    if (region == nullptr) return false;
    const uint64_t inside = region->size - (address - reinterpret_cast<uintptr_t>(region->base));
    if (bytes <= inside) return true;
    address += inside;
    bytes -= inside;
  }
}

uint8_t* TargetWindow::Resolve(uint64_t offset, uint64_t bytes) const {
  if (dynamic) return Attached(offset, bytes) ? reinterpret_cast<uint8_t*>(offset) : nullptr;
  if (bytes > size || offset > size - bytes) return nullptr;
  return base + offset;
}

bool FindElementType(MPI_Datatype handle, ElementType* type) {
  const Basic* basic = FindBasic(handle);
  if (basic == nullptr || basic->kind == BasicKind::kMarker || basic->size == 0) return false;
  *type = {handle, basic->size, basic->extent, basic->size, 0, 0};
  if (basic->kind != BasicKind::kPair) return true;
  type->first = FindBasic(basic->first)->size;
  type->second_offset = basic->second_offset;
  type->span = basic->second_offset + FindBasic(basic->second)->size;
  return true;
}

void FetchElements(const ElementType& type, const uint8_t* from, uint32_t count, uint8_t* packed) {
  if (type.first == 0) {
    std::memcpy(packed, from, size_t{count} * type.size);
    return;
  }
  for (uint32_t i = 0; i < count; ++i, from += type.extent, packed += type.size) {
    std::memcpy(packed, from, type.first);
    std::memcpy(packed + type.first, from + type.second_offset, type.size - type.first);
  }
}

namespace {

constexpr int kSpins = 100, kYieldsPerLook = 16;  // at the clock
constexpr std::chrono::milliseconds kDoubt{10};

// Until it is this rank's. Whoever has it is busy for microseconds, unless its process lost the processor or its life.
void Take(std::atomic<uint32_t>& owner, const AccumulateGuard& guard) {
  const uint32_t me = static_cast<uint32_t>(guard.me) + 1;
  std::chrono::steady_clock::time_point looked_at{};
  for (int tries = 0;; ++tries) {
    uint32_t found = 0;
    if (owner.compare_exchange_strong(found, me, std::memory_order_acquire)) return;
    if (tries < kSpins) {
      Pause();
      continue;
    }
    sched_yield();
    if (tries % kYieldsPerLook != 0 || found == me) continue;
    const auto now = std::chrono::steady_clock::now();
    if (looked_at.time_since_epoch().count() == 0) looked_at = now;
    if (now - looked_at < kDoubt) continue;
    looked_at = now;
    const bool nonsense = found > static_cast<uint32_t>(guard.control.ranks);
    if (!nonsense && (guard.host == nullptr || !guard.host->Ended(static_cast<int>(found - 1)))) continue;
    if (owner.compare_exchange_strong(found, me, std::memory_order_acquire)) return;
  }
}

}  // namespace

AccumulateLock::AccumulateLock(const AccumulateGuard& guard) : guard_(guard) {
  if (guard.mutex != nullptr) {
    if (pthread_mutex_lock(guard.mutex) == EOWNERDEAD) pthread_mutex_consistent(guard.mutex);
  } else if (guard.control) {
    Take(guard.control.head->accumulating, guard);
  }
}

AccumulateLock::~AccumulateLock() {
  if (guard_.mutex != nullptr) {
    pthread_mutex_unlock(guard_.mutex);
  } else if (guard_.control) {
    guard_.control.head->accumulating.store(0, std::memory_order_release);
  }
}

}  // namespace weft::mpi::rma
