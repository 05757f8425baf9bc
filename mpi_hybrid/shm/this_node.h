#ifndef MPI_HYBRID_SHM_THIS_NODE_H_
#define MPI_HYBRID_SHM_THIS_NODE_H_

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::shm {

// The segment of this process, in the order in which MPI_Init goes through it (api/library.cc). Each does nothing where
// the user does not want it (WEFT_SAME_HOST=off, or WEFT_MPI_LLP names another wire).

// JoinJob's early publishing: before the job's first fence.
void BeginNode(Job& job);
// After it, before the device starts.
void JoinNode();
// After the fence behind that.
void SettleNode();

// Null: there is none. From JoinNode on; who else is in it is known from SettleNode on.
NodeSegment* ThisNode();

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_THIS_NODE_H_
