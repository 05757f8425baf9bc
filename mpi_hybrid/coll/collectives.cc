#include "mpi_hybrid/coll/collectives.h"

#include <new>
#include <numeric>
#include <tuple>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/host_group.h"
#include "mpi_hybrid/coll/schedule_request.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/coll/tuning.h"
#include "mpi_hybrid/coll/two_levels.h"

namespace weft::mpi {
namespace {

Place PlaceIn(const Comm& comm) { return {comm.rank, comm.size()}; }
InterPlace InterPlaceIn(const Comm& comm) { return {PlaceIn(comm), comm.remote_size()}; }

void Keep(Schedule& schedule, const Datatype& type) { schedule.Keep(&type); }
void Keep(Schedule& schedule, const Uniform& side) { schedule.Keep(side.type); }
void Keep(Schedule& schedule, const Varying& side) {
  schedule.Keep(side.type);
  for (const Datatype* type : side.types) schedule.Keep(type);
}
void Keep(Schedule& schedule, const Reduction& reduction) {
  schedule.Keep(reduction.type);
  schedule.Keep(*reduction.op);
}

// Has `build` make the schedule, which keeps the types and the operation of `arguments` (a tuple of references), and
// carries it out.
template <typename Arguments, typename Build>
Error Carry(Comm& comm, const Launch& launch, const Arguments& arguments, Build build) {
  if (const Error& setting = TuningError(); !setting.ok()) [[unlikely]]
    return setting;
  const bool by_protocol = launch.how == Launch::How::kBlocking;
  if (comm.clients != nullptr) [[unlikely]]
    WEFT_MPI_TRY(CheckCollective(comm, by_protocol));
  ScheduleRequest* request = ScheduleRequest::Make(comm);
  request->CountSends(launch.sends_count);
  try {
    std::apply([&](const auto&... one) { (Keep(request->schedule, one), ...); }, arguments);
    build(request->schedule);
    // Several of the same kind may be under way at once, and the protocol's tags do not tell them apart.
    if (!by_protocol && comm.clients != nullptr) [[unlikely]]
      request->schedule.UseOwnTags();
  } catch (const std::bad_alloc&) {
    request->Release();
    return Error(MPI_ERR_NO_MEM, "there is no memory for the temporary buffers of the collective");
  }
  if (launch.how == Launch::How::kBlocking) {
    Error error = request->RunToEnd();
    request->Release();
    return error;
  }
  if (launch.how == Launch::How::kNonblocking)
    request->Launch();
  else
    request->MakePersistent();
  *launch.request = request;
  return {};
}

// MPI_IN_PLACE of a reduction: the input is where the result goes.
Reduction MakeReduction(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op) {
  return {send == MPI_IN_PLACE ? receive : send, receive, count, &type, &op};
}

// Bytes of one rank's block, from the side that this rank has.
MPI_Aint BlockBytes(const Uniform& here, const Uniform& otherwise) {
  return here.buffer == MPI_IN_PLACE ? otherwise.count * otherwise.type->size : here.count * here.type->size;
}

// Whether the ranks of the communicator carry a blocking collective out in the memory that they have in common (host/);
// then `*result` is its outcome. All ranks answer alike.
template <typename Carry>
bool CarriedOnHost(Comm& comm, const Launch& launch, Error* result, Carry carry) {
  if (launch.how != Launch::How::kBlocking || !launch.sends_count) return false;
  HostGroup* group = nullptr;
  *result = HostGroup::For(comm, &group);
  if (!result->ok()) return true;
  if (group == nullptr) return false;
  *result = carry(group->member());
  return true;
}
template <typename Carry>
bool CarriedOnHost(Collective collective, Comm& comm, const Launch& launch, Error* result, Carry carry) {
  if (!TuningError().ok() || IsForced(collective)) [[unlikely]]
    return false;
  return CarriedOnHost(comm, launch, result, carry);
}

// Null: the hosts that ranks are on make no difference to it.
const TwoLevels* LevelsFor(Collective collective, MPI_Aint bytes, Comm& comm) {
  const TwoLevels* const levels = IsForced(collective) ? nullptr : TwoLevels::Of(comm);
  return levels != nullptr && levels->AreFor(collective, bytes) ? levels : nullptr;
}

// Vectors of the type may be reduced piece by piece.
bool IsInPieces(const Datatype& type) { return type.dense && type.size > 0 && type.size <= coll::Member::kMostElement; }

coll::FoldOrder OrderOf(Algorithm algorithm, int root = 0) {
  using Shape = coll::FoldOrder::Shape;
  switch (algorithm) {
    case Algorithm::kBinomial:
      return {Shape::kBinomial, root};
    case Algorithm::kRing:
      return {Shape::kRing};
    default:
      return {Shape::kDoubling};
  }
}

coll::Block HostBlockOf(const Uniform& side) {
  return {const_cast<void*>(side.buffer), side.count, side.type, side.buffer == MPI_IN_PLACE};
}

}  // namespace

bool MeetsInMemory(const Comm& comm) {
  return TuningError().ok() && !IsForced(Collective::kAllGather) && !IsForced(Collective::kAllReduce) && HostGroup::IsThere(comm);
}

Error Barrier(Comm& comm, Launch launch) {
  Error result;
  if (CarriedOnHost(comm, launch, &result, [](coll::Member& host) { return host.Barrier(); })) return result;
  return Carry(comm, launch, std::tie(), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterBarrier(schedule, InterPlaceIn(comm));
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildBarrier(schedule);
    if (const TwoLevels* levels = TwoLevels::Of(comm)) return levels->BuildBarrier(schedule);
    BuildBarrier(schedule, PlaceIn(comm));
  });
}

Error Broadcast(void* buffer, MPI_Aint count, const Datatype& type, int root, Comm& comm, Launch launch) {
  Error result;
  if (CarriedOnHost(Collective::kBroadcast, comm, launch, &result,
                    [&](coll::Member& host) { return host.Broadcast({buffer, count, &type}, root); })) {
    return result;
  }
  return Carry(comm, launch, std::tie(type), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterBroadcast(schedule, InterPlaceIn(comm), buffer, count, type, root);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildBroadcast(schedule, buffer, count, type, root);
    if (const TwoLevels* levels = LevelsFor(Collective::kBroadcast, count * type.size, comm)) {
      return levels->BuildBroadcast(schedule, buffer, count, type, root);
    }
    BuildBroadcast(schedule, PlaceIn(comm), Choose(Collective::kBroadcast, count * type.size, comm.size()), buffer,
                   count, type, root);
  });
}

Error Gather(const Uniform& send, const Uniform& receive, int root, Comm& comm, Launch launch) {
  Error result;
  if (CarriedOnHost(Collective::kGather, comm, launch, &result,
                    [&](coll::Member& host) { return host.Gather(HostBlockOf(send), HostBlockOf(receive), root); })) {
    return result;
  }
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterGather(schedule, InterPlaceIn(comm), send, receive, root);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildGather(schedule, send, receive, root);
    const MPI_Aint bytes = comm.rank == root ? receive.count * receive.type->size : send.count * send.type->size;
    if (const TwoLevels* levels = LevelsFor(Collective::kGather, bytes, comm)) {
      return levels->BuildGather(schedule, send, receive, root);
    }
    BuildGather(schedule, PlaceIn(comm), Choose(Collective::kGather, bytes, comm.size()), send, receive, root);
  });
}

Error Gather(const Uniform& send, const Varying& receive, int root, Comm& comm, Launch launch) {
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterGatherV(schedule, InterPlaceIn(comm), send, receive, root);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildGatherV(schedule, send, receive, root);
    BuildGatherV(schedule, PlaceIn(comm), send, receive, root);
  });
}

Error Scatter(const Uniform& send, const Uniform& receive, int root, Comm& comm, Launch launch) {
  Error result;
  if (CarriedOnHost(Collective::kScatter, comm, launch, &result,
                    [&](coll::Member& host) { return host.Scatter(HostBlockOf(send), HostBlockOf(receive), root); })) {
    return result;
  }
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterScatter(schedule, InterPlaceIn(comm), send, receive, root);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildScatter(schedule, send, receive, root);
    const MPI_Aint bytes = comm.rank == root ? send.count * send.type->size : receive.count * receive.type->size;
    if (const TwoLevels* levels = LevelsFor(Collective::kScatter, bytes, comm)) {
      return levels->BuildScatter(schedule, send, receive, root);
    }
    BuildScatter(schedule, PlaceIn(comm), Choose(Collective::kScatter, bytes, comm.size()), send, receive, root);
  });
}

Error Scatter(const Varying& send, const Uniform& receive, int root, Comm& comm, Launch launch) {
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterScatterV(schedule, InterPlaceIn(comm), send, receive, root);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildScatterV(schedule, send, receive, root);
    BuildScatterV(schedule, PlaceIn(comm), send, receive, root);
  });
}

Error AllGather(const Uniform& send, const Uniform& receive, Comm& comm, Launch launch) {
  Error result;
  if (CarriedOnHost(Collective::kAllGather, comm, launch, &result,
                    [&](coll::Member& host) { return host.AllGather(HostBlockOf(send), HostBlockOf(receive)); })) {
    return result;
  }
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterAllGather(schedule, InterPlaceIn(comm), send, receive);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildAllGather(schedule, send, receive);
    const MPI_Aint bytes = comm.size() * receive.count * receive.type->size;
    if (const TwoLevels* levels = LevelsFor(Collective::kAllGather, bytes, comm)) {
      return levels->BuildAllGather(schedule, send, receive);
    }
    BuildAllGather(schedule, PlaceIn(comm), Choose(Collective::kAllGather, bytes, comm.size()), send, receive);
  });
}

Error AllGather(const Uniform& send, const Varying& receive, Comm& comm, Launch launch) {
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterAllGatherV(schedule, InterPlaceIn(comm), send, receive);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildAllGatherV(schedule, send, receive);
    const MPI_Aint total = std::accumulate(receive.counts.begin(), receive.counts.end(), MPI_Aint{0});
    const Algorithm algorithm = Choose(Collective::kAllGatherV, total * receive.type->size, comm.size());
    BuildAllGatherV(schedule, PlaceIn(comm), algorithm, send, receive);
  });
}

Error AllToAll(const Uniform& send, const Uniform& receive, Comm& comm, Launch launch) {
  Error result;
  if (CarriedOnHost(Collective::kAllToAll, comm, launch, &result,
                    [&](coll::Member& host) { return host.AllToAll(HostBlockOf(send), HostBlockOf(receive)); })) {
    return result;
  }
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterAllToAll(schedule, InterPlaceIn(comm), send, receive);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildAllToAll(schedule, send, receive);
    const MPI_Aint block = BlockBytes(send, receive);
    if (const TwoLevels* levels = LevelsFor(Collective::kAllToAll, block, comm)) {
      return levels->BuildAllToAll(schedule, send, receive);
    }
    const Algorithm algorithm = Choose(Collective::kAllToAll, block, comm.size());
    BuildAllToAll(schedule, PlaceIn(comm), algorithm, send, receive);
  });
}

Error AllToAll(const Varying& send, const Varying& receive, Comm& comm, Launch launch) {
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterAllToAllV(schedule, InterPlaceIn(comm), send, receive);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildAllToAllV(schedule, send, receive);
    BuildAllToAllV(schedule, PlaceIn(comm), send, receive);
  });
}

Error Reduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, int root, Comm& comm,
             Launch launch) {
  const Reduction reduction = MakeReduction(send, receive, count, type, op);
  Error result;
  if (IsInPieces(type) && CarriedOnHost(Collective::kReduce, comm, launch, &result, [&](coll::Member& host) {
        const Algorithm algorithm = Choose(Collective::kReduce, count * type.size, comm.size(), op.commutative);
        return host.Reduce(reduction.send, receive, count, type, op, OrderOf(algorithm, op.commutative ? root : 0), root);
      })) {
    return result;
  }
  return Carry(comm, launch, std::tie(reduction), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterReduce(schedule, InterPlaceIn(comm), reduction, root);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildReduce(schedule, reduction, root);
    const TwoLevels* const levels = LevelsFor(Collective::kReduce, count * type.size, comm);
    if (levels != nullptr && levels->KeepsResult(op, type, count * type.size, root)) return levels->BuildReduce(schedule, reduction, root);
    const Algorithm algorithm = Choose(Collective::kReduce, count * type.size, comm.size(), op.commutative);
    BuildReduce(schedule, PlaceIn(comm), algorithm, reduction, root);
  });
}

Error AllReduce(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, Comm& comm,
                Launch launch) {
  const Reduction reduction = MakeReduction(send, receive, count, type, op);
  Error result;
  if (IsInPieces(type) && CarriedOnHost(Collective::kAllReduce, comm, launch, &result, [&](coll::Member& host) {
        const Algorithm algorithm = Choose(Collective::kAllReduce, count * type.size, comm.size(), op.commutative);
        return host.AllReduce(reduction.send, receive, count, type, op, OrderOf(algorithm));
      })) {
    return result;
  }
  return Carry(comm, launch, std::tie(reduction), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterAllReduce(schedule, InterPlaceIn(comm), reduction);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildAllReduce(schedule, reduction);
    const TwoLevels* const levels = LevelsFor(Collective::kAllReduce, count * type.size, comm);
    if (levels != nullptr && levels->KeepsResult(op, type, count * type.size)) return levels->BuildAllReduce(schedule, reduction);
    const Algorithm algorithm = Choose(Collective::kAllReduce, count * type.size, comm.size(), op.commutative);
    BuildAllReduce(schedule, PlaceIn(comm), algorithm, reduction);
  });
}

Error AllReduceInTree(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, Comm& comm, Launch launch) {
  const Reduction reduction = MakeReduction(send, receive, count, type, op);
  launch.sends_count = false;
  return Carry(comm, launch, std::tie(reduction), [&](Schedule& schedule) {
    const Place place = PlaceIn(comm);
    BuildReduce(schedule, place, Algorithm::kBinomial, reduction, /*root=*/0);
    schedule.EndRound();
    BuildBroadcast(schedule, place, Algorithm::kBinomial, receive, count, type, /*root=*/0);
  });
}

Error ReduceScatter(const void* send, void* receive, std::span<const MPI_Aint> counts, const Datatype& type,
                    const Op& op, Comm& comm, Launch launch) {
  const Reduction reduction = MakeReduction(send, receive, 0, type, op);
  return Carry(comm, launch, std::tie(reduction), [&](Schedule& schedule) {
    if (comm.inter) return BuildInterReduceScatter(schedule, InterPlaceIn(comm), reduction, counts);
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildReduceScatter(schedule, reduction, counts);
    const MPI_Aint total = std::accumulate(counts.begin(), counts.end(), MPI_Aint{0});
    const TwoLevels* const levels = LevelsFor(Collective::kReduceScatter, total * type.size, comm);
    if (levels != nullptr && levels->KeepsScattered(op, type, total * type.size)) return levels->BuildReduceScatter(schedule, reduction, counts);
    const Algorithm algorithm = Choose(Collective::kReduceScatter, total * type.size, comm.size(), op.commutative);
    BuildReduceScatter(schedule, PlaceIn(comm), algorithm, reduction, counts);
  });
}

Error ReduceScatterBlock(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op,
                         Comm& comm, Launch launch) {
  const std::vector<MPI_Aint> counts(static_cast<size_t>(comm.size()), count);
  return ReduceScatter(send, receive, counts, type, op, comm, launch);
}

Error Scan(const void* send, void* receive, MPI_Aint count, const Datatype& type, const Op& op, bool exclusive,
           Comm& comm, Launch launch) {
  const Reduction reduction = MakeReduction(send, receive, count, type, op);
  return Carry(comm, launch, std::tie(reduction), [&](Schedule& schedule) {
    if (const Clients* clients = ClientsOf(comm)) [[unlikely]]
      return clients->BuildScan(schedule, reduction, exclusive);
    BuildScan(schedule, PlaceIn(comm), reduction, exclusive);
  });
}

Error NeighborAllGather(const Uniform& send, const Varying& receive, Comm& comm, Launch launch) {
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    BuildNeighborAllGather(schedule, comm.topology->InNeighbours(comm.rank), comm.topology->OutNeighbours(comm.rank),
                           send, receive);
  });
}

Error NeighborAllToAll(const Varying& send, const Varying& receive, Comm& comm, Launch launch) {
  return Carry(comm, launch, std::tie(send, receive), [&](Schedule& schedule) {
    BuildNeighborAllToAll(schedule, comm.topology->InNeighbours(comm.rank), comm.topology->OutNeighbours(comm.rank),
                          comm.topology->kind == MPI_CART, send, receive);
  });
}

}  // namespace weft::mpi
