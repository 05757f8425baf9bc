#include "mpi_hybrid/api/collective_calls.h"

// The entry points of the collectives (MPI 4.0 chapter 6 and sections 8.6 to 8.8). Each has a blocking, a nonblocking
// and a persistent form, and each of these a binding with int and one with MPI_Count; all six do the same with their
// arguments (collective_calls.h). A line of the table at the end of this file makes all of a collective's.

using namespace weft::mpi;

namespace {

// What the two bindings of a function call their arguments.
struct Small {
  using Count = int;
  using Counts = const int*;
  using Displacements = const int*;
};
struct Large {
  using Count = MPI_Count;
  using Counts = const MPI_Count*;
  using Displacements = const MPI_Aint*;
};

// MPI_Neighbor_alltoallw: its displacements are in bytes, and addresses with either binding.
struct SmallWithAddresses {
  using Count = int;
  using Counts = const int*;
  using Displacements = const MPI_Aint*;
};

}  // namespace

// The three forms with one binding: `body` is what carries them out, `suffix` nothing or _c, `parameters` the
// parameters before comm, in parentheses; what of them the body takes follows.
#define WEFT_MPI_FORMS(name, nonblocking, body, suffix, parameters, ...)                                         \
  int PMPI_##name##suffix(WEFT_MPI_LIST parameters MPI_Comm comm) {                                              \
    return OnComm("MPI_" #name #suffix, comm, [&](Comm& c) { return body(c, __VA_ARGS__ __VA_OPT__(, ){}); });   \
  }                                                                                                              \
  WEFT_MPI_ALIAS(name##suffix)                                                                                   \
  int PMPI_##nonblocking##suffix(WEFT_MPI_LIST parameters MPI_Comm comm, MPI_Request* request) {                 \
    return StartOnComm("MPI_" #nonblocking #suffix, comm, request,                                               \
                       [&](Comm& c, Launch launch) { return body(c, __VA_ARGS__ __VA_OPT__(, ) launch); });      \
  }                                                                                                              \
  WEFT_MPI_ALIAS(nonblocking##suffix)                                                                            \
  int PMPI_##name##_init##suffix(WEFT_MPI_LIST parameters MPI_Comm comm, MPI_Info info, MPI_Request* request) {  \
    return PersistentOnComm("MPI_" #name "_init" #suffix, comm, info, request,                                   \
                            [&](Comm& c, Launch launch) { return body(c, __VA_ARGS__ __VA_OPT__(, ) launch); }); \
  }                                                                                                              \
  WEFT_MPI_ALIAS(name##_init##suffix)
#define WEFT_MPI_LIST(...) __VA_ARGS__ __VA_OPT__(, )

// What the body takes of `parameters` is in parameters##_NAMES.
#define WEFT_MPI_COLLECTIVE(name, nonblocking, body, parameters)                     \
  WEFT_MPI_FORMS(name, nonblocking, body, , (parameters(Small)), parameters##_NAMES) \
  WEFT_MPI_FORMS(name, nonblocking, body, _c, (parameters(Large)), parameters##_NAMES)

// One block, blocks of one type, and blocks each of its own type, with B the binding.
#define SEND_ONE(B) const void *sendbuf, B::Count sendcount, MPI_Datatype sendtype
#define SEND_ONE_NAMES \
  One { sendbuf, sendcount, sendtype }
#define SEND_EACH(B) const void *sendbuf, B::Counts sendcounts, B::Displacements sdispls, MPI_Datatype sendtype
#define SEND_EACH_NAMES \
  Each { sendbuf, sendcounts, sdispls, sendtype }
#define SEND_TYPED(B) const void *sendbuf, B::Counts sendcounts, B::Displacements sdispls, const MPI_Datatype *sendtypes
#define SEND_TYPED_NAMES \
  Typed { sendbuf, sendcounts, sdispls, sendtypes }
#define RECEIVE_ONE(B) void *recvbuf, B::Count recvcount, MPI_Datatype recvtype
#define RECEIVE_ONE_NAMES \
  One { recvbuf, recvcount, recvtype }
#define RECEIVE_EACH(B) void *recvbuf, B::Counts recvcounts, B::Displacements rdispls, MPI_Datatype recvtype
#define RECEIVE_EACH_NAMES \
  Each { recvbuf, recvcounts, rdispls, recvtype }
#define RECEIVE_TYPED(B) void *recvbuf, B::Counts recvcounts, B::Displacements rdispls, const MPI_Datatype *recvtypes
#define RECEIVE_TYPED_NAMES \
  Typed { recvbuf, recvcounts, rdispls, recvtypes }

// The parameters of the collectives.
#define BROADCAST(B) void *buffer, B::Count count, MPI_Datatype datatype, int root
#define BROADCAST_NAMES buffer, count, datatype, root
#define ONE_TO_ONE(B) SEND_ONE(B), RECEIVE_ONE(B)
#define ONE_TO_ONE_NAMES SEND_ONE_NAMES, RECEIVE_ONE_NAMES
#define ONE_TO_ONE_AT_ROOT(B) ONE_TO_ONE(B), int root
#define ONE_TO_ONE_AT_ROOT_NAMES ONE_TO_ONE_NAMES, root
#define ONE_TO_EACH(B) SEND_ONE(B), RECEIVE_EACH(B)
#define ONE_TO_EACH_NAMES SEND_ONE_NAMES, RECEIVE_EACH_NAMES
#define ONE_TO_EACH_AT_ROOT(B) ONE_TO_EACH(B), int root
#define ONE_TO_EACH_AT_ROOT_NAMES ONE_TO_EACH_NAMES, root
#define EACH_TO_ONE_AT_ROOT(B) SEND_EACH(B), RECEIVE_ONE(B), int root
#define EACH_TO_ONE_AT_ROOT_NAMES SEND_EACH_NAMES, RECEIVE_ONE_NAMES, root
#define EACH_TO_EACH(B) SEND_EACH(B), RECEIVE_EACH(B)
#define EACH_TO_EACH_NAMES SEND_EACH_NAMES, RECEIVE_EACH_NAMES
#define TYPED_TO_TYPED(B) SEND_TYPED(B), RECEIVE_TYPED(B)
#define TYPED_TO_TYPED_NAMES SEND_TYPED_NAMES, RECEIVE_TYPED_NAMES
#define REDUCTION(B) const void *sendbuf, void *recvbuf, B::Count count, MPI_Datatype datatype, MPI_Op op
#define REDUCTION_NAMES sendbuf, recvbuf, count, datatype, op
#define REDUCTION_AT_ROOT(B) REDUCTION(B), int root
#define REDUCTION_AT_ROOT_NAMES REDUCTION_NAMES, root
#define REDUCTION_OF_EACH(B) const void *sendbuf, void *recvbuf, B::Counts recvcounts, MPI_Datatype datatype, MPI_Op op
#define REDUCTION_OF_EACH_NAMES sendbuf, recvbuf, recvcounts, datatype, op

// The table.
WEFT_MPI_FORMS(Barrier, Ibarrier, CallBarrier, , ())
WEFT_MPI_COLLECTIVE(Bcast, Ibcast, CallBroadcast, BROADCAST)
WEFT_MPI_COLLECTIVE(Gather, Igather, CallGather, ONE_TO_ONE_AT_ROOT)
WEFT_MPI_COLLECTIVE(Gatherv, Igatherv, CallGather, ONE_TO_EACH_AT_ROOT)
WEFT_MPI_COLLECTIVE(Scatter, Iscatter, CallScatter, ONE_TO_ONE_AT_ROOT)
WEFT_MPI_COLLECTIVE(Scatterv, Iscatterv, CallScatter, EACH_TO_ONE_AT_ROOT)
WEFT_MPI_COLLECTIVE(Allgather, Iallgather, CallAllgather, ONE_TO_ONE)
WEFT_MPI_COLLECTIVE(Allgatherv, Iallgatherv, CallAllgather, ONE_TO_EACH)
WEFT_MPI_COLLECTIVE(Alltoall, Ialltoall, CallAlltoall, ONE_TO_ONE)
WEFT_MPI_COLLECTIVE(Alltoallv, Ialltoallv, CallAlltoall, EACH_TO_EACH)
WEFT_MPI_COLLECTIVE(Alltoallw, Ialltoallw, CallAlltoall, TYPED_TO_TYPED)
WEFT_MPI_COLLECTIVE(Reduce, Ireduce, CallReduce, REDUCTION_AT_ROOT)
WEFT_MPI_COLLECTIVE(Allreduce, Iallreduce, CallAllreduce, REDUCTION)
WEFT_MPI_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, CallReduceScatterBlock, REDUCTION)
WEFT_MPI_COLLECTIVE(Reduce_scatter, Ireduce_scatter, CallReduceScatter, REDUCTION_OF_EACH)
WEFT_MPI_COLLECTIVE(Scan, Iscan, CallScan, REDUCTION)
WEFT_MPI_COLLECTIVE(Exscan, Iexscan, CallExscan, REDUCTION)
WEFT_MPI_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, CallNeighborAllgather, ONE_TO_ONE)
WEFT_MPI_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, CallNeighborAllgather, ONE_TO_EACH)
WEFT_MPI_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, CallNeighborAlltoall, ONE_TO_ONE)
WEFT_MPI_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, CallNeighborAlltoall, EACH_TO_EACH)
WEFT_MPI_FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, CallNeighborAlltoall, , (TYPED_TO_TYPED(SmallWithAddresses)),
               TYPED_TO_TYPED_NAMES)
WEFT_MPI_FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, CallNeighborAlltoall, _c, (TYPED_TO_TYPED(Large)),
               TYPED_TO_TYPED_NAMES)
