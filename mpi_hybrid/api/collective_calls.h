#ifndef MPI_HYBRID_API_COLLECTIVE_CALLS_H_
#define MPI_HYBRID_API_COLLECTIVE_CALLS_H_

#include <mpi.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/coll/collectives.h"

// The bodies of the collective functions: argument checks, then coll/. One for the int and the MPI_Count binding of a
// function, and for its blocking, nonblocking and persistent form. Arguments as in the standard's order, without info
// and request.
namespace weft::mpi {

// An argument that is an array of counts or displacements, of either binding.
struct IntArray {
  IntArray(const int* values) : ints(values) {}        // NOLINT: implicit
  IntArray(const MPI_Aint* values) : longs(values) {}  // NOLINT; MPI_Count is the same type
  bool null() const { return ints == nullptr && longs == nullptr; }
  MPI_Aint operator[](size_t i) const { return ints != nullptr ? ints[i] : longs[i]; }

  const int* ints = nullptr;
  const MPI_Aint* longs = nullptr;
};

Error CallBarrier(Comm& comm, Launch launch);
Error CallBcast(Comm& comm, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, Launch launch);
Error CallGather(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int root, Launch launch);
Error CallGatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  IntArray recvcounts, IntArray displs, MPI_Datatype recvtype, int root, Launch launch);
Error CallScatter(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, Launch launch);
Error CallScatterv(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray displs, MPI_Datatype sendtype,
                   void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, Launch launch);
Error CallAllgather(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, Launch launch);
Error CallAllgatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     IntArray recvcounts, IntArray displs, MPI_Datatype recvtype, Launch launch);
Error CallAlltoall(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, Launch launch);
Error CallAlltoallv(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls, MPI_Datatype sendtype,
                    void* recvbuf, IntArray recvcounts, IntArray rdispls, MPI_Datatype recvtype, Launch launch);
Error CallAlltoallw(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls,
                    const MPI_Datatype* sendtypes, void* recvbuf, IntArray recvcounts, IntArray rdispls,
                    const MPI_Datatype* recvtypes, Launch launch);
Error CallReduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 int root, Launch launch);
Error CallAllreduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    Launch launch);
Error CallReduce_scatter(Comm& comm, const void* sendbuf, void* recvbuf, IntArray recvcounts, MPI_Datatype datatype,
                         MPI_Op op, Launch launch);
Error CallReduce_scatter_block(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                               MPI_Datatype datatype, MPI_Op op, Launch launch);
Error CallScan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
               Launch launch);
Error CallExscan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 Launch launch);
Error CallNeighbor_allgather(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, Launch launch);
Error CallNeighbor_allgatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                              void* recvbuf, IntArray recvcounts, IntArray displs, MPI_Datatype recvtype,
                              Launch launch);
Error CallNeighbor_alltoall(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                            MPI_Count recvcount, MPI_Datatype recvtype, Launch launch);
Error CallNeighbor_alltoallv(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls,
                             MPI_Datatype sendtype, void* recvbuf, IntArray recvcounts, IntArray rdispls,
                             MPI_Datatype recvtype, Launch launch);
Error CallNeighbor_alltoallw(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls,
                             const MPI_Datatype* sendtypes, void* recvbuf, IntArray recvcounts, IntArray rdispls,
                             const MPI_Datatype* recvtypes, Launch launch);

// MPI_INFO_NULL or an info object, whose keys are hints that these functions do not know.
Error CheckInfo(MPI_Info info);

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
