#include "mpi_hybrid/api/collective_calls.h"

using namespace weft::mpi;

// Nonblocking collectives (MPI 4.0 section 6.12).

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ibarrier", comm, request, [&](Comm& c, Launch launch) {
    return CallBarrier(c, launch);
  });
}
WEFT_MPI_ALIAS(Ibarrier)

int PMPI_Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ibcast", comm, request, [&](Comm& c, Launch launch) {
    return CallBcast(c, buffer, count, datatype, root, launch);
  });
}
WEFT_MPI_ALIAS(Ibcast)

int PMPI_Ibcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ibcast_c", comm, request, [&](Comm& c, Launch launch) {
    return CallBcast(c, buffer, count, datatype, root, launch);
  });
}
WEFT_MPI_ALIAS(Ibcast_c)

int PMPI_Igather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                 MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Igather", comm, request, [&](Comm& c, Launch launch) {
    return CallGather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Igather)

int PMPI_Igather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Igather_c", comm, request, [&](Comm& c, Launch launch) {
    return CallGather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Igather_c)

int PMPI_Igatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                  const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Igatherv", comm, request, [&](Comm& c, Launch launch) {
    return CallGatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Igatherv)

int PMPI_Igatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
                    MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Igatherv_c", comm, request, [&](Comm& c, Launch launch) {
    return CallGatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Igatherv_c)

int PMPI_Iscatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                  MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iscatter", comm, request, [&](Comm& c, Launch launch) {
    return CallScatter(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Iscatter)

int PMPI_Iscatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iscatter_c", comm, request, [&](Comm& c, Launch launch) {
    return CallScatter(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Iscatter_c)

int PMPI_Iscatterv(const void* sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
                   void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iscatterv", comm, request, [&](Comm& c, Launch launch) {
    return CallScatterv(c, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Iscatterv)

int PMPI_Iscatterv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
                     void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                     MPI_Request* request) {
  return StartOnComm("MPI_Iscatterv_c", comm, request, [&](Comm& c, Launch launch) {
    return CallScatterv(c, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Iscatterv_c)

int PMPI_Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iallgather", comm, request, [&](Comm& c, Launch launch) {
    return CallAllgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Iallgather)

int PMPI_Iallgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iallgather_c", comm, request, [&](Comm& c, Launch launch) {
    return CallAllgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Iallgather_c)

int PMPI_Iallgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                     const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iallgatherv", comm, request, [&](Comm& c, Launch launch) {
    return CallAllgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Iallgatherv)

int PMPI_Iallgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                       const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                       MPI_Request* request) {
  return StartOnComm("MPI_Iallgatherv_c", comm, request, [&](Comm& c, Launch launch) {
    return CallAllgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Iallgatherv_c)

int PMPI_Ialltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ialltoall", comm, request, [&](Comm& c, Launch launch) {
    return CallAlltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ialltoall)

int PMPI_Ialltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ialltoall_c", comm, request, [&](Comm& c, Launch launch) {
    return CallAlltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ialltoall_c)

int PMPI_Ialltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                    void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                    MPI_Request* request) {
  return StartOnComm("MPI_Ialltoallv", comm, request, [&](Comm& c, Launch launch) {
    return CallAlltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ialltoallv)

int PMPI_Ialltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                      MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                      MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ialltoallv_c", comm, request, [&](Comm& c, Launch launch) {
    return CallAlltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ialltoallv_c)

int PMPI_Ialltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                    void* recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[],
                    MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ialltoallw", comm, request, [&](Comm& c, Launch launch) {
    return CallAlltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, launch);
  });
}
WEFT_MPI_ALIAS(Ialltoallw)

int PMPI_Ialltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                      const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                      const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ialltoallw_c", comm, request, [&](Comm& c, Launch launch) {
    return CallAlltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, launch);
  });
}
WEFT_MPI_ALIAS(Ialltoallw_c)

int PMPI_Ireduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                 MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ireduce", comm, request, [&](Comm& c, Launch launch) {
    return CallReduce(c, sendbuf, recvbuf, count, datatype, op, root, launch);
  });
}
WEFT_MPI_ALIAS(Ireduce)

int PMPI_Ireduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                   MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ireduce_c", comm, request, [&](Comm& c, Launch launch) {
    return CallReduce(c, sendbuf, recvbuf, count, datatype, op, root, launch);
  });
}
WEFT_MPI_ALIAS(Ireduce_c)

int PMPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                    MPI_Request* request) {
  return StartOnComm("MPI_Iallreduce", comm, request, [&](Comm& c, Launch launch) {
    return CallAllreduce(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Iallreduce)

int PMPI_Iallreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iallreduce_c", comm, request, [&](Comm& c, Launch launch) {
    return CallAllreduce(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Iallreduce_c)

int PMPI_Ireduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                               MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ireduce_scatter_block", comm, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter_block(c, sendbuf, recvbuf, recvcount, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Ireduce_scatter_block)

int PMPI_Ireduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                 MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ireduce_scatter_block_c", comm, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter_block(c, sendbuf, recvbuf, recvcount, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Ireduce_scatter_block_c)

int PMPI_Ireduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ireduce_scatter", comm, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter(c, sendbuf, recvbuf, recvcounts, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Ireduce_scatter)

int PMPI_Ireduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ireduce_scatter_c", comm, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter(c, sendbuf, recvbuf, recvcounts, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Ireduce_scatter_c)

int PMPI_Iscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
               MPI_Request* request) {
  return StartOnComm("MPI_Iscan", comm, request, [&](Comm& c, Launch launch) {
    return CallScan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Iscan)

int PMPI_Iscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                 MPI_Request* request) {
  return StartOnComm("MPI_Iscan_c", comm, request, [&](Comm& c, Launch launch) {
    return CallScan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Iscan_c)

int PMPI_Iexscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                 MPI_Request* request) {
  return StartOnComm("MPI_Iexscan", comm, request, [&](Comm& c, Launch launch) {
    return CallExscan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Iexscan)

int PMPI_Iexscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Iexscan_c", comm, request, [&](Comm& c, Launch launch) {
    return CallExscan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Iexscan_c)
