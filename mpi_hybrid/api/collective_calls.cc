#include "mpi_hybrid/api/collective_calls.h"

#include <string>

#include "mpi_hybrid/api/collective_arguments.h"

namespace weft::mpi {
namespace {

constexpr const char* kAtRoot = "at the root";
constexpr const char* kElsewhere = "at other ranks than the root";
constexpr const char* kHere = "in this function";

size_t RemoteSize(const Comm& comm) { return static_cast<size_t>(comm.remote_size()); }

// What of a rooted collective this process takes part in.
enum class Role : uint8_t { kNone, kRoot, kOther };
Role RoleIn(const Comm& comm, int root) {
  if (!comm.inter) return comm.rank == root ? Role::kRoot : Role::kOther;
  if (root == MPI_PROC_NULL) return Role::kNone;
  return root == MPI_ROOT ? Role::kRoot : Role::kOther;
}

bool Empty(const Uniform& side) { return side.count * side.type->size == 0; }

// Where block `index` of a uniform buffer starts; null stays null.
const void* Block(const Uniform& side, int index) {
  return side.buffer == nullptr ? nullptr
                                : static_cast<const char*>(side.buffer) + index * side.count * side.type->extent;
}
const void* Block(const Varying& side, int index) {
  if (side.buffer == nullptr) return nullptr;
  return static_cast<const char*>(side.buffer) + side.displacements[static_cast<size_t>(index)] * side.type->extent;
}

Error MakeOp(MPI_Op handle, const Datatype& type, const Op** op) {
  WEFT_MPI_TRY(FindOp(handle, op));
  return (*op)->Accepts(type);
}

// The arguments that all reductions have.
Error MakeReduction(const void* sendbuf, const void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op handle,
                    const Datatype** type, const Op** op) {
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindCommitted(datatype, type));
  WEFT_MPI_TRY(MakeOp(handle, **type, op));
  if (sendbuf != MPI_IN_PLACE) WEFT_MPI_TRY(CheckBuffer(sendbuf, count, **type));
  WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kHere));
  WEFT_MPI_TRY(CheckBuffer(recvbuf, count, **type));
  return CheckDistinct(sendbuf, recvbuf, count * (*type)->size == 0);
}

// Send side of a collective in which sendbuf may be MPI_IN_PLACE, receive side of one in which it may not.
Error MakeSend(const Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, Uniform* send) {
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", sendbuf));
  if (sendbuf != MPI_IN_PLACE) return MakeUniform("send", sendbuf, sendcount, sendtype, send);
  send->buffer = MPI_IN_PLACE;
  return {};
}
Error MakeReceive(void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, Uniform* receive) {
  WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kHere));
  return MakeUniform("recv", recvbuf, recvcount, recvtype, receive);
}

Error CheckTopology(const Comm& comm) {
  if (comm.topology != nullptr) [[likely]]
    return {};
  return Error(MPI_ERR_TOPOLOGY, "comm has no process topology");
}

// Both sides of a neighbourhood collective may not be MPI_IN_PLACE.
Error CheckNeighborBuffers(const Comm& comm, const void* sendbuf, const void* recvbuf) {
  WEFT_MPI_TRY(CheckTopology(comm));
  WEFT_MPI_TRY(CheckNotInPlace("sendbuf", sendbuf, kHere));
  return CheckNotInPlace("recvbuf", recvbuf, kHere);
}
size_t InDegree(const Comm& comm) { return comm.topology->InNeighbours(comm.rank).size(); }
size_t OutDegree(const Comm& comm) { return comm.topology->OutNeighbours(comm.rank).size(); }

}  // namespace

Error CallBarrier(Comm& comm, Launch launch) { return Barrier(comm, launch); }

Error CallBcast(Comm& comm, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Datatype* type;
  if (RoleIn(comm, root) == Role::kNone) return Broadcast(nullptr, 0, *Datatype::Find(MPI_BYTE), root, comm, launch);
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindCommitted(datatype, &type));
  WEFT_MPI_TRY(CheckNotInPlace("buffer", buffer, kHere));
  WEFT_MPI_TRY(CheckBuffer(buffer, count, *type));
  return Broadcast(buffer, count, *type, root, comm, launch);
}

Error CallGather(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Role role = RoleIn(comm, root);
  Uniform send, receive;
  if (role == Role::kRoot) {
    WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kAtRoot));
    WEFT_MPI_TRY(MakeUniform("recv", recvbuf, recvcount, recvtype, &receive));
    if (!comm.inter) {
      WEFT_MPI_TRY(MakeSend(comm, sendbuf, sendcount, sendtype, &send));
      if (sendbuf != MPI_IN_PLACE) WEFT_MPI_TRY(CheckDistinct(sendbuf, Block(receive, root), Empty(send)));
    }
  } else if (role == Role::kOther) {
    WEFT_MPI_TRY(CheckNotInPlace("sendbuf", sendbuf, kElsewhere));
    WEFT_MPI_TRY(MakeUniform("send", sendbuf, sendcount, sendtype, &send));
  }
  return Gather(send, receive, root, comm, launch);
}

Error CallGatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  IntArray recvcounts, IntArray displs, MPI_Datatype recvtype, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Role role = RoleIn(comm, root);
  Uniform send;
  VaryingArgument receive(role == Role::kRoot ? RemoteSize(comm) : 0);
  if (role == Role::kRoot) {
    WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kAtRoot));
    WEFT_MPI_TRY(receive.Set("recv", recvbuf, recvcounts, displs, recvtype));
    if (!comm.inter) {
      WEFT_MPI_TRY(MakeSend(comm, sendbuf, sendcount, sendtype, &send));
      if (sendbuf != MPI_IN_PLACE) WEFT_MPI_TRY(CheckDistinct(sendbuf, Block(receive.get(), root), Empty(send)));
    }
  } else if (role == Role::kOther) {
    WEFT_MPI_TRY(CheckNotInPlace("sendbuf", sendbuf, kElsewhere));
    WEFT_MPI_TRY(MakeUniform("send", sendbuf, sendcount, sendtype, &send));
  }
  return GatherV(send, receive.get(), root, comm, launch);
}

Error CallScatter(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Role role = RoleIn(comm, root);
  Uniform send, receive;
  if (role == Role::kRoot) {
    WEFT_MPI_TRY(CheckNotInPlace("sendbuf", sendbuf, kAtRoot));
    WEFT_MPI_TRY(MakeUniform("send", sendbuf, sendcount, sendtype, &send));
    receive.buffer = recvbuf;
    if (!comm.inter && recvbuf != MPI_IN_PLACE) {
      WEFT_MPI_TRY(MakeUniform("recv", recvbuf, recvcount, recvtype, &receive));
      WEFT_MPI_TRY(CheckDistinct(Block(send, root), recvbuf, Empty(receive)));
    }
  } else if (role == Role::kOther) {
    WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kElsewhere));
    WEFT_MPI_TRY(MakeUniform("recv", recvbuf, recvcount, recvtype, &receive));
  }
  return Scatter(send, receive, root, comm, launch);
}

Error CallScatterv(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray displs, MPI_Datatype sendtype,
                   void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Role role = RoleIn(comm, root);
  VaryingArgument send(role == Role::kRoot ? RemoteSize(comm) : 0);
  Uniform receive;
  if (role == Role::kRoot) {
    WEFT_MPI_TRY(CheckNotInPlace("sendbuf", sendbuf, kAtRoot));
    WEFT_MPI_TRY(send.Set("send", sendbuf, sendcounts, displs, sendtype));
    receive.buffer = recvbuf;
    if (!comm.inter && recvbuf != MPI_IN_PLACE) {
      WEFT_MPI_TRY(MakeUniform("recv", recvbuf, recvcount, recvtype, &receive));
      WEFT_MPI_TRY(CheckDistinct(Block(send.get(), root), recvbuf, Empty(receive)));
    }
  } else if (role == Role::kOther) {
    WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kElsewhere));
    WEFT_MPI_TRY(MakeUniform("recv", recvbuf, recvcount, recvtype, &receive));
  }
  return ScatterV(send.get(), receive, root, comm, launch);
}

Error CallAllgather(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, Launch launch) {
  Uniform send, receive;
  WEFT_MPI_TRY(MakeSend(comm, sendbuf, sendcount, sendtype, &send));
  WEFT_MPI_TRY(MakeReceive(recvbuf, recvcount, recvtype, &receive));
  if (!comm.inter && sendbuf != MPI_IN_PLACE)
    WEFT_MPI_TRY(CheckDistinct(sendbuf, Block(receive, comm.rank), Empty(send)));
  return AllGather(send, receive, comm, launch);
}

Error CallAllgatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     IntArray recvcounts, IntArray displs, MPI_Datatype recvtype, Launch launch) {
  Uniform send;
  VaryingArgument receive(RemoteSize(comm));
  WEFT_MPI_TRY(MakeSend(comm, sendbuf, sendcount, sendtype, &send));
  WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kHere));
  WEFT_MPI_TRY(receive.Set("recv", recvbuf, recvcounts, displs, recvtype));
  if (!comm.inter && sendbuf != MPI_IN_PLACE)
    WEFT_MPI_TRY(CheckDistinct(sendbuf, Block(receive.get(), comm.rank), Empty(send)));
  return AllGatherV(send, receive.get(), comm, launch);
}

Error CallAlltoall(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, Launch launch) {
  Uniform send, receive;
  WEFT_MPI_TRY(MakeSend(comm, sendbuf, sendcount, sendtype, &send));
  WEFT_MPI_TRY(MakeReceive(recvbuf, recvcount, recvtype, &receive));
  if (sendbuf != MPI_IN_PLACE) WEFT_MPI_TRY(CheckDistinct(sendbuf, recvbuf, Empty(send)));
  return AllToAll(send, receive, comm, launch);
}

Error CallAlltoallv(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls, MPI_Datatype sendtype,
                    void* recvbuf, IntArray recvcounts, IntArray rdispls, MPI_Datatype recvtype, Launch launch) {
  VaryingArgument send(RemoteSize(comm)), receive(RemoteSize(comm));
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", sendbuf));
  WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kHere));
  WEFT_MPI_TRY(receive.Set("recv", recvbuf, recvcounts, rdispls, recvtype));
  if (sendbuf == MPI_IN_PLACE) {
    send.SetInPlace();
  } else {
    WEFT_MPI_TRY(send.Set("send", sendbuf, sendcounts, sdispls, sendtype));
    WEFT_MPI_TRY(CheckDistinct(sendbuf, recvbuf, send.empty() || receive.empty()));
  }
  return AllToAllV(send.get(), receive.get(), comm, launch);
}

Error CallAlltoallw(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls,
                    const MPI_Datatype* sendtypes, void* recvbuf, IntArray recvcounts, IntArray rdispls,
                    const MPI_Datatype* recvtypes, Launch launch) {
  VaryingArgument send(RemoteSize(comm)), receive(RemoteSize(comm));
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", sendbuf));
  WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kHere));
  WEFT_MPI_TRY(receive.SetTyped("recv", recvbuf, recvcounts, rdispls, recvtypes));
  if (sendbuf == MPI_IN_PLACE) {
    send.SetInPlace();
  } else {
    WEFT_MPI_TRY(send.SetTyped("send", sendbuf, sendcounts, sdispls, sendtypes));
    WEFT_MPI_TRY(CheckDistinct(sendbuf, recvbuf, send.empty() || receive.empty()));
  }
  return AllToAllV(send.get(), receive.get(), comm, launch);
}

Error CallReduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op handle,
                 int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Role role = RoleIn(comm, root);
  const Datatype* type = Datatype::Find(MPI_BYTE);
  const Op* op = Op::Find(MPI_BOR);
  if (role == Role::kNone) return Reduce(nullptr, nullptr, 0, *type, *op, root, comm, launch);
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindCommitted(datatype, &type));
  WEFT_MPI_TRY(MakeOp(handle, *type, &op));
  if (role == Role::kRoot) {
    WEFT_MPI_TRY(CheckNotInPlace("recvbuf", recvbuf, kAtRoot));
    WEFT_MPI_TRY(CheckBuffer(recvbuf, count, *type));
  }
  if (role == Role::kOther) WEFT_MPI_TRY(CheckNotInPlace("sendbuf", sendbuf, kElsewhere));
  if ((role == Role::kOther || !comm.inter) && sendbuf != MPI_IN_PLACE)
    WEFT_MPI_TRY(CheckBuffer(sendbuf, count, *type));
  if (role == Role::kRoot && !comm.inter) WEFT_MPI_TRY(CheckDistinct(sendbuf, recvbuf, count * type->size == 0));
  return Reduce(sendbuf, recvbuf, count, *type, *op, root, comm, launch);
}

Error CallAllreduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                    MPI_Op handle, Launch launch) {
  const Datatype* type;
  const Op* op;
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", sendbuf));
  WEFT_MPI_TRY(MakeReduction(sendbuf, recvbuf, count, datatype, handle, &type, &op));
  return AllReduce(sendbuf, recvbuf, count, *type, *op, comm, launch);
}

Error CallReduce_scatter(Comm& comm, const void* sendbuf, void* recvbuf, IntArray recvcounts, MPI_Datatype datatype,
                         MPI_Op handle, Launch launch) {
  const auto size = static_cast<size_t>(comm.size());
  ShortArray<MPI_Aint> counts(size);
  MPI_Aint total = 0;
  if (recvcounts.null()) return Error(MPI_ERR_ARG, "recvcounts is a null pointer");
  for (size_t i = 0; i < size; ++i) {
    counts[i] = recvcounts[i];
    total += counts[i];
    if (counts[i] < 0) {
      return Error(MPI_ERR_COUNT, "recvcounts[" + std::to_string(i) + "] is negative: " + std::to_string(counts[i]));
    }
  }
  const Datatype* type;
  const Op* op;
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", sendbuf));
  const MPI_Aint own = counts[static_cast<size_t>(comm.rank)];
  WEFT_MPI_TRY(MakeReduction(sendbuf, recvbuf, own, datatype, handle, &type, &op));
  if (sendbuf != MPI_IN_PLACE) WEFT_MPI_TRY(CheckBuffer(sendbuf, total, *type));
  return ReduceScatter(sendbuf, recvbuf, counts.span(), *type, *op, comm, launch);
}

Error CallReduce_scatter_block(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                               MPI_Datatype datatype, MPI_Op handle, Launch launch) {
  const Datatype* type;
  const Op* op;
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", sendbuf));
  WEFT_MPI_TRY(MakeReduction(sendbuf, recvbuf, recvcount, datatype, handle, &type, &op));
  return ReduceScatterBlock(sendbuf, recvbuf, recvcount, *type, *op, comm, launch);
}

Error CallScan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op handle,
               Launch launch) {
  const Datatype* type;
  const Op* op;
  WEFT_MPI_TRY(CheckIntra(comm));
  WEFT_MPI_TRY(MakeReduction(sendbuf, recvbuf, count, datatype, handle, &type, &op));
  return Scan(sendbuf, recvbuf, count, *type, *op, false, comm, launch);
}

Error CallExscan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op handle,
                 Launch launch) {
  const Datatype* type;
  const Op* op;
  WEFT_MPI_TRY(CheckIntra(comm));
  // Rank 0 gets no result: its recvbuf need not hold one. That it is not sendbuf is checked there too: the mistake is
  // the same at all ranks, and one that went on alone would hide it.
  const bool unused = comm.rank == 0 && sendbuf != MPI_IN_PLACE;
  int placeholder;
  WEFT_MPI_TRY(MakeReduction(sendbuf, unused ? &placeholder : recvbuf, count, datatype, handle, &type, &op));
  WEFT_MPI_TRY(CheckDistinct(sendbuf, recvbuf, count * type->size == 0));
  return Scan(sendbuf, recvbuf, count, *type, *op, true, comm, launch);
}

Error CallNeighbor_allgather(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, Launch launch) {
  WEFT_MPI_TRY(CheckNeighborBuffers(comm, sendbuf, recvbuf));
  Uniform send, each;
  VaryingArgument receive(InDegree(comm));
  WEFT_MPI_TRY(MakeUniform("send", sendbuf, sendcount, sendtype, &send));
  WEFT_MPI_TRY(MakeUniform("recv", recvbuf, recvcount, recvtype, &each));
  receive.SetUniform(each);
  WEFT_MPI_TRY(CheckDistinct(sendbuf, recvbuf, Empty(send) || receive.empty()));
  return NeighborAllGather(send, receive.get(), comm, launch);
}

Error CallNeighbor_allgatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                              void* recvbuf, IntArray recvcounts, IntArray displs, MPI_Datatype recvtype,
                              Launch launch) {
  WEFT_MPI_TRY(CheckNeighborBuffers(comm, sendbuf, recvbuf));
  Uniform send;
  VaryingArgument receive(InDegree(comm));
  WEFT_MPI_TRY(MakeUniform("send", sendbuf, sendcount, sendtype, &send));
  WEFT_MPI_TRY(receive.Set("recv", recvbuf, recvcounts, displs, recvtype));
  return NeighborAllGather(send, receive.get(), comm, launch);
}

Error CallNeighbor_alltoall(Comm& comm, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                            MPI_Count recvcount, MPI_Datatype recvtype, Launch launch) {
  WEFT_MPI_TRY(CheckNeighborBuffers(comm, sendbuf, recvbuf));
  Uniform each_sent, each_received;
  VaryingArgument send(OutDegree(comm)), receive(InDegree(comm));
  WEFT_MPI_TRY(MakeUniform("send", sendbuf, sendcount, sendtype, &each_sent));
  WEFT_MPI_TRY(MakeUniform("recv", recvbuf, recvcount, recvtype, &each_received));
  send.SetUniform(each_sent);
  receive.SetUniform(each_received);
  WEFT_MPI_TRY(CheckDistinct(sendbuf, recvbuf, send.empty() || receive.empty()));
  return NeighborAllToAll(send.get(), receive.get(), comm, launch);
}

Error CallNeighbor_alltoallv(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls,
                             MPI_Datatype sendtype, void* recvbuf, IntArray recvcounts, IntArray rdispls,
                             MPI_Datatype recvtype, Launch launch) {
  WEFT_MPI_TRY(CheckNeighborBuffers(comm, sendbuf, recvbuf));
  VaryingArgument send(OutDegree(comm)), receive(InDegree(comm));
  WEFT_MPI_TRY(send.Set("send", sendbuf, sendcounts, sdispls, sendtype));
  WEFT_MPI_TRY(receive.Set("recv", recvbuf, recvcounts, rdispls, recvtype));
  return NeighborAllToAll(send.get(), receive.get(), comm, launch);
}

Error CallNeighbor_alltoallw(Comm& comm, const void* sendbuf, IntArray sendcounts, IntArray sdispls,
                             const MPI_Datatype* sendtypes, void* recvbuf, IntArray recvcounts, IntArray rdispls,
                             const MPI_Datatype* recvtypes, Launch launch) {
  WEFT_MPI_TRY(CheckNeighborBuffers(comm, sendbuf, recvbuf));
  VaryingArgument send(OutDegree(comm)), receive(InDegree(comm));
  WEFT_MPI_TRY(send.SetTyped("send", sendbuf, sendcounts, sdispls, sendtypes));
  WEFT_MPI_TRY(receive.SetTyped("recv", recvbuf, recvcounts, rdispls, recvtypes));
  return NeighborAllToAll(send.get(), receive.get(), comm, launch);
}

}  // namespace weft::mpi
