#ifndef MPI_HYBRID_SHM_THIS_NODE_H_
#define MPI_HYBRID_SHM_THIS_NODE_H_

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::shm {

// The segment of this process. The functions are in the order in which MPI_Init calls them (api/library.cc). None of
// them has an effect if the user does not want a segment (WEFT_SAME_HOST=off, or WEFT_MPI_LLP names another wire).

// Called by JoinJob before the job's first fence.
void BeginNode(Job& job);
// Called after that fence, before the device starts.
void JoinNode();
// Called after the following fence.
void SettleNode();

// Null: there is no segment. Valid from JoinNode on; from SettleNode on it is known which other processes are in it.
NodeSegment* ThisNode();

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_THIS_NODE_H_
