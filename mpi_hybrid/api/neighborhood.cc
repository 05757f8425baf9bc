#include "mpi_hybrid/api/collective_calls.h"

using namespace weft::mpi;

// Neighbourhood collectives (MPI 4.0 sections 8.6 to 8.8).

int PMPI_Neighbor_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Neighbor_allgather", comm, [&](Comm& c) {
    return CallNeighbor_allgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Neighbor_allgather)

int PMPI_Neighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Neighbor_allgather_c", comm, [&](Comm& c) {
    return CallNeighbor_allgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Neighbor_allgather_c)

int PMPI_Neighbor_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                             const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Neighbor_allgatherv", comm, [&](Comm& c) {
    return CallNeighbor_allgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Neighbor_allgatherv)

int PMPI_Neighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                               const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                               MPI_Comm comm) {
  return OnComm("MPI_Neighbor_allgatherv_c", comm, [&](Comm& c) {
    return CallNeighbor_allgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Neighbor_allgatherv_c)

int PMPI_Neighbor_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                           MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Neighbor_alltoall", comm, [&](Comm& c) {
    return CallNeighbor_alltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoall)

int PMPI_Neighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Neighbor_alltoall_c", comm, [&](Comm& c) {
    return CallNeighbor_alltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, {});
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoall_c)

int PMPI_Neighbor_alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                            void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                            MPI_Comm comm) {
  return OnComm("MPI_Neighbor_alltoallv", comm, [&](Comm& c) {
    return CallNeighbor_alltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                                  {});
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallv)

int PMPI_Neighbor_alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                              MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                              const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return OnComm("MPI_Neighbor_alltoallv_c", comm, [&](Comm& c) {
    return CallNeighbor_alltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                                  {});
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallv_c)

int PMPI_Neighbor_alltoallw(const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                            const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                            const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return OnComm("MPI_Neighbor_alltoallw", comm, [&](Comm& c) {
    return CallNeighbor_alltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                                  {});
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallw)

int PMPI_Neighbor_alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                              const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                              const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return OnComm("MPI_Neighbor_alltoallw_c", comm, [&](Comm& c) {
    return CallNeighbor_alltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                                  {});
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallw_c)

int PMPI_Ineighbor_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_allgather", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_allgather)

int PMPI_Ineighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                               MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_allgather_c", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_allgather_c)

int PMPI_Ineighbor_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                              const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                              MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_allgatherv", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_allgatherv)

int PMPI_Ineighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                                MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_allgatherv_c", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_allgatherv_c)

int PMPI_Ineighbor_alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_alltoall", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_alltoall)

int PMPI_Ineighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_alltoall_c", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_alltoall_c)

int PMPI_Ineighbor_alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                             void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                             MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_alltoallv", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_alltoallv)

int PMPI_Ineighbor_alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                               MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                               const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_alltoallv_c", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_alltoallv_c)

int PMPI_Ineighbor_alltoallw(const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                             const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                             const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                             MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_alltoallw", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_alltoallw)

int PMPI_Ineighbor_alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                               const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                               const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                               MPI_Request* request) {
  return StartOnComm("MPI_Ineighbor_alltoallw_c", comm, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Ineighbor_alltoallw_c)

int PMPI_Neighbor_allgather_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                 MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_allgather_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_allgather_init)

int PMPI_Neighbor_allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                   MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                   MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_allgather_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgather(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_allgather_init_c)

int PMPI_Neighbor_allgatherv_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                  const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                  MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_allgatherv_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_allgatherv_init)

int PMPI_Neighbor_allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                                    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_allgatherv_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_allgatherv(c, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_allgatherv_init_c)

int PMPI_Neighbor_alltoall_init(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_alltoall_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoall_init)

int PMPI_Neighbor_alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                  MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_alltoall_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoall(c, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoall_init_c)

int PMPI_Neighbor_alltoallv_init(const void* sendbuf, const int sendcounts[], const int sdispls[],
                                 MPI_Datatype sendtype, void* recvbuf, const int recvcounts[], const int rdispls[],
                                 MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_alltoallv_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallv_init)

int PMPI_Neighbor_alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                   MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                                   const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                   MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_alltoallv_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallv(c, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallv_init_c)

int PMPI_Neighbor_alltoallw_init(const void* sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                                 const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                                 const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                                 MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_alltoallw_init", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallw_init)

int PMPI_Neighbor_alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                   const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                                   const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                                   MPI_Info info, MPI_Request* request) {
  return PersistentOnComm("MPI_Neighbor_alltoallw_init_c", comm, info, request, [&](Comm& c, Launch launch) {
    return CallNeighbor_alltoallw(c, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                                  launch);
  });
}
WEFT_MPI_ALIAS(Neighbor_alltoallw_init_c)
