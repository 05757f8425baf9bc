#include "mpi_hybrid/api/collective_calls.h"

#include <string>

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

// The send side of a collective in which sendbuf may be MPI_IN_PLACE.
Error SetSend(const Comm& comm, const One& given, UniformArgument* send) {
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", given.buffer));
  if (given.buffer != MPI_IN_PLACE) return send->Set("send", given);
  send->SetBuffer(MPI_IN_PLACE);
  return {};
}
// The receive side of one in which recvbuf may not.
template <typename Given>
Error SetReceive(const Given& given, ArgumentOf<Given>* receive) {
  WEFT_MPI_TRY(CheckNotInPlace("recvbuf", given.buffer, kHere));
  return receive->Set("recv", given);
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

Error CallBroadcast(Comm& comm, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Datatype* type;
  if (RoleIn(comm, root) == Role::kNone) return Broadcast(nullptr, 0, *Datatype::Find(MPI_BYTE), root, comm, launch);
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindCommitted(datatype, &type));
  WEFT_MPI_TRY(CheckNotInPlace("buffer", buffer, kHere));
  WEFT_MPI_TRY(CheckBuffer(buffer, count, *type));
  return Broadcast(buffer, count, *type, root, comm, launch);
}

template <typename Receive>
Error CallGather(Comm& comm, const One& given_send, const Receive& given_receive, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Role role = RoleIn(comm, root);
  UniformArgument send;
  ArgumentOf<Receive> receive(role == Role::kRoot ? RemoteSize(comm) : 0);
  if (role == Role::kRoot) {
    WEFT_MPI_TRY(CheckNotInPlace("recvbuf", given_receive.buffer, kAtRoot));
    WEFT_MPI_TRY(receive.Set("recv", given_receive));
    if (!comm.inter) {
      WEFT_MPI_TRY(SetSend(comm, given_send, &send));
      if (given_send.buffer != MPI_IN_PLACE)
        WEFT_MPI_TRY(CheckDistinct(given_send.buffer, receive.block(root), send.empty()));
    }
  } else if (role == Role::kOther) {
    WEFT_MPI_TRY(CheckNotInPlace("sendbuf", given_send.buffer, kElsewhere));
    WEFT_MPI_TRY(send.Set("send", given_send));
  }
  return Gather(send.get(), receive.get(), root, comm, launch);
}
template Error CallGather(Comm&, const One&, const One&, int, Launch);
template Error CallGather(Comm&, const One&, const Each&, int, Launch);

template <typename Send>
Error CallScatter(Comm& comm, const Send& given_send, const One& given_receive, int root, Launch launch) {
  WEFT_MPI_TRY(CheckRoot(root, comm));
  const Role role = RoleIn(comm, root);
  ArgumentOf<Send> send(role == Role::kRoot ? RemoteSize(comm) : 0);
  UniformArgument receive;
  if (role == Role::kRoot) {
    WEFT_MPI_TRY(CheckNotInPlace("sendbuf", given_send.buffer, kAtRoot));
    WEFT_MPI_TRY(send.Set("send", given_send));
    receive.SetBuffer(given_receive.buffer);
    if (!comm.inter && given_receive.buffer != MPI_IN_PLACE) {
      WEFT_MPI_TRY(receive.Set("recv", given_receive));
      WEFT_MPI_TRY(CheckDistinct(send.block(root), given_receive.buffer, receive.empty()));
    }
  } else if (role == Role::kOther) {
    WEFT_MPI_TRY(CheckNotInPlace("recvbuf", given_receive.buffer, kElsewhere));
    WEFT_MPI_TRY(receive.Set("recv", given_receive));
  }
  return Scatter(send.get(), receive.get(), root, comm, launch);
}
template Error CallScatter(Comm&, const One&, const One&, int, Launch);
template Error CallScatter(Comm&, const Each&, const One&, int, Launch);

template <typename Receive>
Error CallAllgather(Comm& comm, const One& given_send, const Receive& given_receive, Launch launch) {
  UniformArgument send;
  ArgumentOf<Receive> receive(RemoteSize(comm));
  WEFT_MPI_TRY(SetSend(comm, given_send, &send));
  WEFT_MPI_TRY(SetReceive(given_receive, &receive));
  if (!comm.inter && given_send.buffer != MPI_IN_PLACE)
    WEFT_MPI_TRY(CheckDistinct(given_send.buffer, receive.block(comm.rank), send.empty()));
  return AllGather(send.get(), receive.get(), comm, launch);
}
template Error CallAllgather(Comm&, const One&, const One&, Launch);
template Error CallAllgather(Comm&, const One&, const Each&, Launch);

Error CallAlltoall(Comm& comm, const One& given_send, const One& given_receive, Launch launch) {
  UniformArgument send, receive;
  WEFT_MPI_TRY(SetSend(comm, given_send, &send));
  WEFT_MPI_TRY(SetReceive(given_receive, &receive));
  if (given_send.buffer != MPI_IN_PLACE)
    WEFT_MPI_TRY(CheckDistinct(given_send.buffer, given_receive.buffer, send.empty()));
  return AllToAll(send.get(), receive.get(), comm, launch);
}

template <typename Block>
Error CallAlltoall(Comm& comm, const Block& given_send, const Block& given_receive, Launch launch) {
  VaryingArgument send(RemoteSize(comm)), receive(RemoteSize(comm));
  WEFT_MPI_TRY(CheckInPlace(comm, "sendbuf", given_send.buffer));
  WEFT_MPI_TRY(SetReceive(given_receive, &receive));
  if (given_send.buffer == MPI_IN_PLACE) {
    send.SetBuffer(MPI_IN_PLACE);
  } else {
    WEFT_MPI_TRY(send.Set("send", given_send));
    WEFT_MPI_TRY(CheckDistinct(given_send.buffer, given_receive.buffer, send.empty() || receive.empty()));
  }
  return AllToAll(send.get(), receive.get(), comm, launch);
}
template Error CallAlltoall(Comm&, const Each&, const Each&, Launch);
template Error CallAlltoall(Comm&, const Typed&, const Typed&, Launch);

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

Error CallReduceScatter(Comm& comm, const void* sendbuf, void* recvbuf, IntArray recvcounts, MPI_Datatype datatype,
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

Error CallReduceScatterBlock(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                             MPI_Op handle, Launch launch) {
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

template <typename Receive>
Error CallNeighborAllgather(Comm& comm, const One& given_send, const Receive& given_receive, Launch launch) {
  WEFT_MPI_TRY(CheckNeighborBuffers(comm, given_send.buffer, given_receive.buffer));
  UniformArgument send;
  VaryingArgument receive(InDegree(comm));
  WEFT_MPI_TRY(send.Set("send", given_send));
  WEFT_MPI_TRY(receive.Set("recv", given_receive));
  if constexpr (std::is_same_v<Receive, One>)
    WEFT_MPI_TRY(CheckDistinct(given_send.buffer, given_receive.buffer, send.empty() || receive.empty()));
  return NeighborAllGather(send.get(), receive.get(), comm, launch);
}
template Error CallNeighborAllgather(Comm&, const One&, const One&, Launch);
template Error CallNeighborAllgather(Comm&, const One&, const Each&, Launch);

template <typename Block>
Error CallNeighborAlltoall(Comm& comm, const Block& given_send, const Block& given_receive, Launch launch) {
  WEFT_MPI_TRY(CheckNeighborBuffers(comm, given_send.buffer, given_receive.buffer));
  VaryingArgument send(OutDegree(comm)), receive(InDegree(comm));
  WEFT_MPI_TRY(send.Set("send", given_send));
  WEFT_MPI_TRY(receive.Set("recv", given_receive));
  if constexpr (std::is_same_v<Block, One>)
    WEFT_MPI_TRY(CheckDistinct(given_send.buffer, given_receive.buffer, send.empty() || receive.empty()));
  return NeighborAllToAll(send.get(), receive.get(), comm, launch);
}
template Error CallNeighborAlltoall(Comm&, const One&, const One&, Launch);
template Error CallNeighborAlltoall(Comm&, const Each&, const Each&, Launch);
template Error CallNeighborAlltoall(Comm&, const Typed&, const Typed&, Launch);

}  // namespace weft::mpi
