#include "mpi_hybrid/api/collective_calls.h"

using namespace weft::mpi;

// Blocking collectives (MPI 4.0 chapter 6).

int PMPI_Barrier(MPI_Comm comm) {
  return OnComm("MPI_Barrier", comm, [&](Comm& c) { return CallBarrier(c, {}); });
}
WEFT_MPI_ALIAS(Barrier)

int PMPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return OnComm("MPI_Bcast", comm, [&](Comm& c) { return CallBcast(c, buffer, count, datatype, root, {}); });
}
WEFT_MPI_ALIAS(Bcast)

int PMPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return OnComm("MPI_Bcast_c", comm, [&](Comm& c) { return CallBcast(c, buffer, count, datatype, root, {}); });
}
WEFT_MPI_ALIAS(Bcast_c)

int PMPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return OnComm("MPI_Gather", comm, [&](Comm& c) {
    return CallGather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Gather)

int PMPI_Gather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                  MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return OnComm("MPI_Gather_c", comm, [&](Comm& c) {
    return CallGather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Gather_c)

int PMPI_Gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                 const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return OnComm("MPI_Gatherv", comm, [&](Comm& c) {
    return CallGatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Gatherv)

int PMPI_Gatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
                   MPI_Comm comm) {
  return OnComm("MPI_Gatherv_c", comm, [&](Comm& c) {
    return CallGatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Gatherv_c)

int PMPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                 MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return OnComm("MPI_Scatter", comm, [&](Comm& c) {
    return CallScatter(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Scatter)

int PMPI_Scatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return OnComm("MPI_Scatter_c", comm, [&](Comm& c) {
    return CallScatter(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Scatter_c)

int PMPI_Scatterv(const void* sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void* recvbuf,
                  int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return OnComm("MPI_Scatterv", comm, [&](Comm& c) {
    return CallScatterv(c, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Scatterv)

int PMPI_Scatterv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
                    void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return OnComm("MPI_Scatterv_c", comm, [&](Comm& c) {
    return CallScatterv(c, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, {});
  });
}
WEFT_MPI_ALIAS(Scatterv_c)

int PMPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Allgather", comm, [&](Comm& c) {
    return CallAllgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Allgather)

int PMPI_Allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Allgather_c", comm, [&](Comm& c) {
    return CallAllgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Allgather_c)

int PMPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                    const int displs[], MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Allgatherv", comm, [&](Comm& c) {
    return CallAllgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Allgatherv)

int PMPI_Allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                      const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Allgatherv_c", comm, [&](Comm& c) {
    return CallAllgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Allgatherv_c)

int PMPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Alltoall", comm, [&](Comm& c) {
    return CallAlltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Alltoall)

int PMPI_Alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Alltoall_c", comm, [&](Comm& c) {
    return CallAlltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Alltoall_c)

int PMPI_Alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                   void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Alltoallv", comm, [&](Comm& c) {
    return CallAlltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Alltoallv)

int PMPI_Alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                     void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
                     MPI_Comm comm) {
  return OnComm("MPI_Alltoallv_c", comm, [&](Comm& c) {
    return CallAlltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Alltoallv_c)

int PMPI_Alltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                   void* recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[],
                   MPI_Comm comm) {
  return OnComm("MPI_Alltoallw", comm, [&](Comm& c) {
    return CallAlltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, {});
  });
}
WEFT_MPI_ALIAS(Alltoallw)

int PMPI_Alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                     const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                     const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return OnComm("MPI_Alltoallw_c", comm, [&](Comm& c) {
    return CallAlltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, {});
  });
}
WEFT_MPI_ALIAS(Alltoallw_c)

int PMPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                MPI_Comm comm) {
  return OnComm("MPI_Reduce", comm,
                [&](Comm& c) { return CallReduce(c, sendbuf, recvbuf, count, datatype, op, root, {}); });
}
WEFT_MPI_ALIAS(Reduce)

int PMPI_Reduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                  MPI_Comm comm) {
  return OnComm("MPI_Reduce_c", comm,
                [&](Comm& c) { return CallReduce(c, sendbuf, recvbuf, count, datatype, op, root, {}); });
}
WEFT_MPI_ALIAS(Reduce_c)

int PMPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return OnComm("MPI_Allreduce", comm,
                [&](Comm& c) { return CallAllreduce(c, sendbuf, recvbuf, count, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Allreduce)

int PMPI_Allreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                     MPI_Comm comm) {
  return OnComm("MPI_Allreduce_c", comm,
                [&](Comm& c) { return CallAllreduce(c, sendbuf, recvbuf, count, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Allreduce_c)

int PMPI_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm) {
  return OnComm("MPI_Reduce_scatter_block", comm,
                [&](Comm& c) { return CallReduce_scatter_block(c, sendbuf, recvbuf, recvcount, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Reduce_scatter_block)

int PMPI_Reduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                MPI_Op op, MPI_Comm comm) {
  return OnComm("MPI_Reduce_scatter_block_c", comm,
                [&](Comm& c) { return CallReduce_scatter_block(c, sendbuf, recvbuf, recvcount, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Reduce_scatter_block_c)

int PMPI_Reduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm) {
  return OnComm("MPI_Reduce_scatter", comm,
                [&](Comm& c) { return CallReduce_scatter(c, sendbuf, recvbuf, recvcounts, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Reduce_scatter)

int PMPI_Reduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
                          MPI_Op op, MPI_Comm comm) {
  return OnComm("MPI_Reduce_scatter_c", comm,
                [&](Comm& c) { return CallReduce_scatter(c, sendbuf, recvbuf, recvcounts, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Reduce_scatter_c)

int PMPI_Scan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return OnComm("MPI_Scan", comm, [&](Comm& c) { return CallScan(c, sendbuf, recvbuf, count, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Scan)

int PMPI_Scan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return OnComm("MPI_Scan_c", comm, [&](Comm& c) { return CallScan(c, sendbuf, recvbuf, count, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Scan_c)

int PMPI_Exscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return OnComm("MPI_Exscan", comm, [&](Comm& c) { return CallExscan(c, sendbuf, recvbuf, count, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Exscan)

int PMPI_Exscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm) {
  return OnComm("MPI_Exscan_c", comm,
                [&](Comm& c) { return CallExscan(c, sendbuf, recvbuf, count, datatype, op, {}); });
}
WEFT_MPI_ALIAS(Exscan_c)
