#ifndef MPI_HYBRID_COLL_COLLECTIVES_H_
#define MPI_HYBRID_COLL_COLLECTIVES_H_

#include <mpi.h>

#include <span>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/p2p/request.h"

// Collectives (MPI 4.0 chapter 6), on intra- and intercommunicators, with MPI_IN_PLACE. Each Start form returns a request (the caller's
// reference); Run waits for it. All calls with the library's lock; arguments are valid. Counts and displacements are MPI_Aint, so that
// one body serves the int and the MPI_Count bindings; displacements are in units of the type's extent unless they say bytes.
namespace weft::mpi {

// One side's buffer of a collective in which each rank has the same amount.
struct Uniform {
  const void* buffer = nullptr;  // or MPI_IN_PLACE
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
};
// ... in which each rank has its own; spans of the communicator's remote size (or of the number of neighbours).
struct Varying {
  const void* buffer = nullptr;
  std::span<const MPI_Aint> counts, displacements;
  const Datatype* type = nullptr;
  std::span<const Datatype* const> types;  // MPI_Alltoallw: instead of `type`, and displacements are in bytes
};

Error StartBarrier(Comm& comm, Request** request);
Error StartBroadcast(void* buffer, MPI_Aint count, const Datatype& type, int root, Comm& comm, Request** request);
Error StartGather(const Uniform& send, const Uniform& receive, int root, Comm& comm, Request** request);
Error StartGatherV(const Uniform& send, const Varying& receive, int root, Comm& comm, Request** request);
Error StartScatter(const Uniform& send, const Uniform& receive, int root, Comm& comm, Request** request);
Error StartScatterV(const Varying& send, const Uniform& receive, int root, Comm& comm, Request** request);
Error StartAllGather(const Uniform& send, const Uniform& receive, Comm& comm, Request** request);
Error StartAllGatherV(const Uniform& send, const Varying& receive, Comm& comm, Request** request);
Error StartAllToAll(const Uniform& send, const Uniform& receive, Comm& comm, Request** request);
Error StartAllToAllV(const Varying& send, const Varying& receive, Comm& comm, Request** request);  // w form too
Error StartReduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, int root, Comm& comm,
                  Request** request);
Error StartAllReduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, Comm& comm, Request** request);
Error StartReduceScatter(const void* send, void* receive, std::span<const MPI_Aint> counts, const Datatype& type, const Op& op,
                         Comm& comm, Request** request);
Error StartReduceScatterBlock(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, Comm& comm,
                              Request** request);
Error StartScan(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, bool exclusive, Comm& comm,
                Request** request);
Error StartNeighborAllGather(const Uniform& send, const Varying& receive, Comm& comm, Request** request);
Error StartNeighborAllToAll(const Varying& send, const Varying& receive, Comm& comm, Request** request);

// Persistent forms (MPI 4.0 section 6.13) wrap a maker of the nonblocking one.

// Waits for `request`, drops it, returns its error.
Error Run(Error started, Request* request);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_COLLECTIVES_H_
