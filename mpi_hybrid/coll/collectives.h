#ifndef MPI_HYBRID_COLL_COLLECTIVES_H_
#define MPI_HYBRID_COLL_COLLECTIVES_H_

#include <mpi.h>

#include <span>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/p2p/request/request.h"

// Collectives (MPI 4.0 chapter 6) on intracommunicators and intercommunicators, with MPI_IN_PLACE. Call them with the
// library's lock held and with valid arguments. Counts and displacements are MPI_Aint, so that one implementation
// serves the int and the MPI_Count bindings. Displacements are in units of the type's extent unless stated in bytes.
namespace weft::mpi {

// The buffer of one side of a collective in which every rank has the same amount of data.
struct Uniform {
  const void* buffer = nullptr;  // or MPI_IN_PLACE
  MPI_Aint count = 0;
  const Datatype* type = nullptr;
};
// The buffer of one side of a collective in which each rank has its own amount. The spans have the communicator's
// remote size (or the number of neighbours).
struct Varying {
  const void* buffer = nullptr;
  std::span<const MPI_Aint> counts, displacements;
  const Datatype* type = nullptr;
  std::span<const Datatype* const> types;  // MPI_Alltoallw: instead of `type`, and displacements are in bytes
};

// How a collective is carried out: until it is complete; in the background (the caller owns the reference in
// `*request`); or as a persistent request (MPI 4.0 section 6.13), which is inactive until Request::Start.
struct Launch {
  enum class How : uint8_t { kBlocking, kNonblocking, kPersistent };

  static Launch Blocking() { return {}; }
  static Launch Start(Request** request) { return {How::kNonblocking, request}; }
  static Launch Persistent(Request** request) { return {How::kPersistent, request}; }

  How how = How::kBlocking;
  Request** request = nullptr;
  bool sends_count = true;  // an error of a send is an error of the collective
};

// Whether blocking collectives of `comm` are carried out in memory shared by all of its ranks. (Reductions of large
// elements are not.) The result is the same at all ranks that had no error. After an error, such as a death, each
// further collective soon fails at the rank that had the error, whatever the other ranks do.
bool MeetsInMemory(const Comm& comm);

Error Barrier(Comm& comm, Launch launch = {});
Error Broadcast(void* buffer, MPI_Aint count, const Datatype& type, int root, Comm& comm, Launch launch = {});
Error Gather(const Uniform& send, const Uniform& receive, int root, Comm& comm, Launch launch = {});
Error Gather(const Uniform& send, const Varying& receive, int root, Comm& comm, Launch launch = {});
Error Scatter(const Uniform& send, const Uniform& receive, int root, Comm& comm, Launch launch = {});
Error Scatter(const Varying& send, const Uniform& receive, int root, Comm& comm, Launch launch = {});
Error AllGather(const Uniform& send, const Uniform& receive, Comm& comm, Launch launch = {});
Error AllGather(const Uniform& send, const Varying& receive, Comm& comm, Launch launch = {});
Error AllToAll(const Uniform& send, const Uniform& receive, Comm& comm, Launch launch = {});
Error AllToAll(const Varying& send, const Varying& receive, Comm& comm, Launch launch = {});
Error Reduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, int root, Comm& comm,
             Launch launch = {});
Error AllReduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, Comm& comm,
                Launch launch = {});
// An AllReduce up and down one tree, for several reductions in a row. A rank that fails in one does not take part in
// the next; group_tree.h explains why no other rank waits for it. Not for intercommunicators.
Error AllReduceInTree(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, Comm& comm, Launch launch = {});
Error ReduceScatter(const void* send, void* receive, std::span<const MPI_Aint> counts, const Datatype& type,
                    const Op& op, Comm& comm, Launch launch = {});
Error ReduceScatterBlock(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op,
                         Comm& comm, Launch launch = {});
Error Scan(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, bool exclusive,
           Comm& comm, Launch launch = {});
Error NeighborAllGather(const Uniform& send, const Varying& receive, Comm& comm, Launch launch = {});
Error NeighborAllToAll(const Varying& send, const Varying& receive, Comm& comm, Launch launch = {});

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_COLLECTIVES_H_
