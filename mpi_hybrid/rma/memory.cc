#include "mpi_hybrid/rma/memory.h"

#include <algorithm>
#include <cstdlib>

#include "base/settings.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/rma/host_memory.h"

namespace weft::mpi {
namespace {

// Where nobody else is, memory of the process's own is as good, and may have huge pages.
bool HasCompany() {
  const Job& job = ThisJob();
  return job.ranks_on_host > 1 || job.processes.limit() > job.size;
}

}  // namespace

void* AllocateMemory(size_t bytes, size_t alignment) {
  if (ProcessSettings().SharesMemory() == SameHost::kAuto && !ProcessSettings().NeedsWire() && HasCompany()) {
    if (void* const memory = rma::HostMemory::OfThisProcess().Take(bytes, alignment); memory != nullptr) return memory;
  }
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, std::max<size_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void FreeMemory(void* memory) {
  if (!rma::HostMemory::OfThisProcess().Give(memory)) std::free(memory);
}

}  // namespace weft::mpi
