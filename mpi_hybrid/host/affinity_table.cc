#include "mpi_hybrid/host/affinity_table.h"

#include <algorithm>

namespace weft::mpi::host {

// Two processes that write the same set at the same time, or one that dies meanwhile, cost an entry and nothing else.
void AffinityTable::Add(const cpu_set_t& processors) {
  for (Affinity& entry : entries_) {
    uint32_t state = entry.state.load(std::memory_order_acquire);
    if (state == Affinity::kFree && entry.state.compare_exchange_strong(state, Affinity::kBeingWritten, std::memory_order_acquire)) {
      entry.processors = processors;
      entry.processes.fetch_add(1, std::memory_order_relaxed);
      entry.state.store(Affinity::kWritten, std::memory_order_release);
      return;
    }
    if (state != Affinity::kWritten || !CPU_EQUAL(&entry.processors, &processors)) continue;
    entry.processes.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

int AffinityTable::ElsewhereThan(const cpu_set_t& processors) const {
  size_t elsewhere = 0;
  for (const Affinity& entry : entries_) {
    const uint32_t state = entry.state.load(std::memory_order_acquire);
    if (state == Affinity::kFree) break;
    if (state != Affinity::kWritten) continue;
    cpu_set_t both;
    CPU_AND(&both, &entry.processors, &processors);
    if (CPU_COUNT(&both) == 0) elsewhere += entry.processes.load(std::memory_order_relaxed);
  }
  return static_cast<int>(std::min(elsewhere, entries_.size()));
}

}  // namespace weft::mpi::host
