#ifndef MPI_HYBRID_HOST_THIS_HOST_H_
#define MPI_HYBRID_HOST_THIS_HOST_H_

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/host/segment.h"

namespace weft::mpi::host {

// The segment of this process. The functions are in the order in which MPI_Init calls them (api/library.cc). None of
// them has an effect if the user does not want a segment (WEFT_SAME_HOST=off, or WEFT_MPI_LLP names another wire).

// Called by JoinJob before the job's first fence.
void BeginHost(Job& job);
// Called after that fence, before the device starts.
void JoinHost();
// Called after the following fence.
void SettleHost();

// Null: there is no segment. Valid from JoinHost on; from SettleHost on it is known which other processes are in it.
Segment* ThisHost();

// The bell of this process: the segment's, or, if there is none, one that is made at the first call. It lives as long as
// the process.
const Bell& OwnBell();

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_THIS_HOST_H_
