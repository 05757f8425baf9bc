#ifndef MPI_HYBRID_RMA_TARGET_WINDOW_H_
#define MPI_HYBRID_RMA_TARGET_WINDOW_H_

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/rma/accumulate_turn.h"
#include "mpi_hybrid/rma/control_block.h"
#include "mpi_hybrid/rma/fence_notice.h"
#include "mpi_hybrid/rma/host_ranks.h"
#include "mpi_hybrid/rma/lock_manager.h"
#include "mpi_hybrid/rma/wire.h"

struct ibv_mr;

namespace weft::mpi::rma {

// The memory of this process that origins may access through one window. Guarded by the service's mutex, except for the
// control block. `base`, `size`, `mr`, `rank_of`, `control`, `host` and `guard` do not change while the service knows
// the window.
struct TargetWindow {
  struct Region {
    uint8_t* base = nullptr;
    uint64_t size = 0;
    ibv_mr* mr = nullptr;
  };

  uint32_t id = 0;
  bool dynamic = false;
  uint8_t* base = nullptr;
  uint64_t size = 0;
  ibv_mr* mr = nullptr;  // of the memory; null: none, or dynamic
  std::vector<Region> regions;  // dynamic: attached
  std::vector<int> rank_of;     // by process, -1: not in the window's group
  ControlBlock control;
  HostRanks* host = nullptr;
  LockManager locks;  // uses the lock in the control block
  AccumulateGuard guard;
  std::vector<FenceNotice> fences;  // by rank

  // Called when the lock may be free: wakes the ranks of this host that wait for it.
  void WakeWaiting() const {
    if (host != nullptr) locks.lock().ForEachWaiting([this](int rank) { host->Wake(rank); });
  }

  int RankOf(ProcessId process) const {
    const auto at = static_cast<size_t>(process);
    return at < rank_of.size() ? rank_of[at] : -1;
  }
  // The address of the memory. Null: it is not completely inside the window. In a dynamic window it must be attached,
  // in one region or in several adjacent ones.
  uint8_t* Resolve(uint64_t offset, uint64_t bytes) const;
  // The one region that contains all of it; null if there is none.
  const Region* RegionOf(uint64_t address, uint64_t bytes) const;

 private:
  bool Attached(uint64_t address, uint64_t bytes) const;
};

// Elements of predefined types. In windows they are one extent apart; in messages they are packed, pairs without their
// padding.
struct ElementType {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  uint32_t size = 0, extent = 0;
  uint32_t span = 0;                      // bytes from the beginning of an element to its end
  uint32_t first = 0, second_offset = 0;  // pairs: size of the first part, and offset of the second. 0: no pair
  bool integral = false;                  // predefined.h
};
inline constexpr ElementType kByteElements{MPI_BYTE, 1, 1, 1, 0, 0, true};  // for data that is only moved
// False: `handle` is not a predefined type with data.
bool FindElementType(MPI_Datatype handle, ElementType* type);
void FetchElements(const ElementType& type, const uint8_t* from, uint32_t count, uint8_t* packed);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_TARGET_WINDOW_H_
