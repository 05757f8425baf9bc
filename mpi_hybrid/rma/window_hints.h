#ifndef MPI_HYBRID_RMA_WINDOW_HINTS_H_
#define MPI_HYBRID_RMA_WINDOW_HINTS_H_

#include <mpi.h>

#include "mpi_hybrid/core/info.h"

// Hints of windows (MPI 4.0 sections 12.2.1 to 12.2.3 and 12.2.7). MPI_Win_get_info returns the hints in force. It
// omits, and the window ignores: unknown keys, invalid values, and hints that do not apply to this window (another
// flavour, or given after the window was made).
//
//   no_locks, same_size, same_disp_unit, accumulate_ops, accumulate_ordering, mpi_accumulate_granularity
//                                 promises of the program. They are stored but not used: the default order and
//                                 atomicity is correct for all of them.
//   alloc_shared_noncontig        MPI_Win_allocate_shared: the memory of each rank begins at a page
//   mpi_minimum_memory_alignment  a power of two up to kWindowAlignment, for memory that begins at a page
//   weft_ways                     set by the window: the number of targets reached in each way (meet_host.cc)
namespace weft::mpi {

constexpr int kWindowAlignment = 4096;

// The hints for a window that is made with `given` (null: none). `flavor`: an MPI_WIN_FLAVOR_...
Ref<Info> HintsOfWindow(int flavor, const Info* given);
// MPI_Win_set_info.
void ChangeHintsOfWindow(Info& hints, const Info& given);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_RMA_WINDOW_HINTS_H_
