#ifndef MPI_HYBRID_API_COLLECTIVE_CALLS_H_
#define MPI_HYBRID_API_COLLECTIVE_CALLS_H_

#include "mpi_hybrid/api/collective_arguments.h"

// The bodies of the collective functions: argument checks, then coll/. One body serves the int and the MPI_Count
// binding of a function, and its blocking, nonblocking and persistent forms. Where the checks are the same, it also
// serves the forms One, Each and Typed. Arguments are in the standard's order, without info and request.
namespace weft::mpi {

Error CallBarrier(Comm& comm, Launch launch);
Error CallBroadcast(Comm& comm, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, Launch launch);
// Send and Receive: One, Each.
template <typename Receive>
Error CallGather(Comm& comm, const One& send, const Receive& receive, int root, Launch launch);
template <typename Send>
Error CallScatter(Comm& comm, const Send& send, const One& receive, int root, Launch launch);
template <typename Receive>
Error CallAllgather(Comm& comm, const One& send, const Receive& receive, Launch launch);
Error CallAlltoall(Comm& comm, const One& send, const One& receive, Launch launch);
// Each, Typed.
template <typename Block>
Error CallAlltoall(Comm& comm, const Block& send, const Block& receive, Launch launch);
Error CallReduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 int root, Launch launch);
Error CallAllreduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    Launch launch);
Error CallReduceScatter(Comm& comm, const void* sendbuf, void* recvbuf, IntArray recvcounts, MPI_Datatype datatype,
                        MPI_Op op, Launch launch);
Error CallReduceScatterBlock(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                             MPI_Op op, Launch launch);
Error CallScan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
               Launch launch);
Error CallExscan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 Launch launch);
// One, Each.
template <typename Receive>
Error CallNeighborAllgather(Comm& comm, const One& send, const Receive& receive, Launch launch);
// One, Each, Typed.
template <typename Block>
Error CallNeighborAlltoall(Comm& comm, const Block& send, const Block& receive, Launch launch);

// Entry points of the nonblocking and the persistent forms.
template <typename Body>
int GiveOnComm(const char* name, MPI_Comm comm, Launch::How how, MPI_Request* request, Body body) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* made = nullptr;
    WEFT_MPI_TRY(body(c, Launch{how, &made}));
    *request = Request::Give(made);
    return {};
  });
}
template <typename Body>
int StartOnComm(const char* name, MPI_Comm comm, MPI_Request* request, Body body) {
  return GiveOnComm(name, comm, Launch::How::kNonblocking, request, body);
}
template <typename Body>
int PersistentOnComm(const char* name, MPI_Comm comm, MPI_Info info, MPI_Request* request, Body body) {
  return GiveOnComm(name, comm, Launch::How::kPersistent, request, [&](Comm& c, Launch launch) -> Error {
    WEFT_MPI_TRY(CheckInfo(info));
    return body(c, launch);
  });
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_COLLECTIVE_CALLS_H_
