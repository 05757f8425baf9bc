#ifndef MPI_HYBRID_RMA_WINDOW_HINTS_H_
#define MPI_HYBRID_RMA_WINDOW_HINTS_H_

#include <mpi.h>

#include "mpi_hybrid/core/info.h"

// Hints of windows (MPI 4.0 sections 12.2.1 to 12.2.3 and 12.2.7). MPI_Win_get_info returns the hints in force. It
// omits, and the window ignores: unknown keys, invalid values, and hints that do not apply to this window (another
// flavour, or given after the window was made).
//
//   no_locks, same_size, same_disp_unit, accumulate_ops, accumulate_ordering, mpi_accumulate_granularity
//                                 promises of the program, which are kept and need not be used: ordered and atomic as by default is right for all of them
//   alloc_shared_noncontig        of MPI_Win_allocate_shared: each rank's memory begins at a page
//   mpi_minimum_memory_alignment  where memory begins at a page: up to that
//   weft_ways                     how many targets are reached how (meet_host.cc)
namespace weft::mpi {

constexpr int kWindowAlignment = 4096;

// The hints for a window that is made with `given` (null: none). `flavor`: an MPI_WIN_FLAVOR_...
Ref<Info> HintsOfWindow(int flavor, const Info* given);
// MPI_Win_set_info.
void ChangeHintsOfWindow(Info& hints, const Info& given);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_RMA_WINDOW_HINTS_H_
