#include "mpi_hybrid/api/collective_calls.h"

using namespace weft::mpi;

// Persistent collectives (MPI 4.0 section 6.13).

int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Barrier_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallBarrier(c, launch);
  });
}
WEFT_MPI_ALIAS(Barrier_init)

int PMPI_Bcast_init(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                    MPI_Request* request) {
  return PersistentOnComm("MPI_Bcast_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallBcast(c, buffer, count, datatype, root, launch);
  });
}
WEFT_MPI_ALIAS(Bcast_init)

int PMPI_Bcast_init_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  return PersistentOnComm("MPI_Bcast_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallBcast(c, buffer, count, datatype, root, launch);
  });
}
WEFT_MPI_ALIAS(Bcast_init_c)

int PMPI_Gather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                     MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Gather_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallGather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Gather_init)

int PMPI_Gather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request) {
  return PersistentOnComm("MPI_Gather_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallGather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Gather_init_c)

int PMPI_Gatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                      const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  return PersistentOnComm("MPI_Gatherv_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallGatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Gatherv_init)

int PMPI_Gatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
                        MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Gatherv_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallGatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Gatherv_init_c)

int PMPI_Scatter_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                      MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Scatter_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallScatter(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Scatter_init)

int PMPI_Scatter_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                        MPI_Request* request) {
  return PersistentOnComm("MPI_Scatter_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallScatter(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Scatter_init_c)

int PMPI_Scatterv_init(const void* sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
                       void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request) {
  return PersistentOnComm("MPI_Scatterv_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallScatterv(c, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Scatterv_init)

int PMPI_Scatterv_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                         MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Scatterv_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallScatterv(c, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, launch);
  });
}
WEFT_MPI_ALIAS(Scatterv_init_c)

int PMPI_Allgather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                        MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Allgather_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAllgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Allgather_init)

int PMPI_Allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                          MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                          MPI_Request* request) {
  return PersistentOnComm("MPI_Allgather_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAllgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Allgather_init_c)

int PMPI_Allgatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                         const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                         MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Allgatherv_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAllgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Allgatherv_init)

int PMPI_Allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                           const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                           MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Allgatherv_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAllgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Allgatherv_init_c)

int PMPI_Alltoall_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Alltoall_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAlltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Alltoall_init)

int PMPI_Alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                         MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                         MPI_Request* request) {
  return PersistentOnComm("MPI_Alltoall_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAlltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Alltoall_init_c)

int PMPI_Alltoallv_init(const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                        void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                        MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Alltoallv_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAlltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Alltoallv_init)

int PMPI_Alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                          MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                          MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Alltoallv_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAlltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Alltoallv_init_c)

int PMPI_Alltoallw_init(const void* sendbuf, const int sendcounts[], const int sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[], const int rdispls[],
                        const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Alltoallw_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAlltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, launch);
  });
}
WEFT_MPI_ALIAS(Alltoallw_init)

int PMPI_Alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                          const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                          const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                          MPI_Request* request) {
  return PersistentOnComm("MPI_Alltoallw_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAlltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, launch);
  });
}
WEFT_MPI_ALIAS(Alltoallw_init_c)

int PMPI_Reduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                     MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Reduce_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallReduce(c, sendbuf, recvbuf, count, datatype, op, root, launch);
  });
}
WEFT_MPI_ALIAS(Reduce_init)

int PMPI_Reduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                       MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Reduce_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallReduce(c, sendbuf, recvbuf, count, datatype, op, root, launch);
  });
}
WEFT_MPI_ALIAS(Reduce_init_c)

int PMPI_Allreduce_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                        MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Allreduce_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAllreduce(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Allreduce_init)

int PMPI_Allreduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Allreduce_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallAllreduce(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Allreduce_init_c)

int PMPI_Reduce_scatter_block_init(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Reduce_scatter_block_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter_block(c, sendbuf, recvbuf, recvcount, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Reduce_scatter_block_init)

int PMPI_Reduce_scatter_block_init_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Reduce_scatter_block_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter_block(c, sendbuf, recvbuf, recvcount, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Reduce_scatter_block_init_c)

int PMPI_Reduce_scatter_init(const void* sendbuf, void* recvbuf, const int recvcounts[], MPI_Datatype datatype,
                             MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Reduce_scatter_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter(c, sendbuf, recvbuf, recvcounts, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Reduce_scatter_init)

int PMPI_Reduce_scatter_init_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Reduce_scatter_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallReduce_scatter(c, sendbuf, recvbuf, recvcounts, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Reduce_scatter_init_c)

int PMPI_Scan_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                   MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Scan_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallScan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Scan_init)

int PMPI_Scan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                     MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Scan_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallScan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Scan_init_c)

int PMPI_Exscan_init(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                     MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Exscan_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallExscan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Exscan_init)

int PMPI_Exscan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                       MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Exscan_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallExscan(c, sendbuf, recvbuf, count, datatype, op, launch);
  });
}
WEFT_MPI_ALIAS(Exscan_init_c)
