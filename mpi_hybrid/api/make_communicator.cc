#include <mpi.h>

#include <cstring>
#include <string>

#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/group_arguments.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/p2p/message.h"

// Constructors of communicators (MPI 4.0 sections 7.4.2 and 7.6.2).
using namespace weft::mpi;

namespace {

// The attributes of a duplicate. An error keeps none.
Error CopyAttributes(Comm& from, Attributes* to) {
  Error copied = from.attributes.CopyTo(from.handle, to);
  // What the copy functions have made is deleted again, as far as the delete functions let it.
  if (!copied.ok()) (void)to->DeleteAll(from.handle).ok();
  return copied;
}

Error DuplicateWithAttributes(Comm& comm, const Info* hints, MPI_Comm* newcomm) {
  const Ref<Comm> alive(&comm);
  Attributes attributes;
  const Error copied = CopyAttributes(comm, &attributes);
  Ref<Comm> made;
  Error error = Duplicate(comm, &made, copied);
  if (!error.ok()) {
    (void)attributes.DeleteAll(comm.handle).ok();
    return error;
  }
  made->attributes = std::move(attributes);
  SetHintsOfNew(*made, hints);
  *newcomm = Comm::Give(made);
  return {};
}

Error StartDuplicateWithAttributes(Comm& comm, const Info* hints, MPI_Comm* newcomm, MPI_Request* request) {
  const Ref<Comm> alive(&comm);
  Attributes attributes;
  const Error copied = CopyAttributes(comm, &attributes);
  Ref<Comm> made;
  Request* started = nullptr;
  WEFT_MPI_TRY(StartDuplicate(comm, &made, &started, copied));
  made->attributes = std::move(attributes);
  SetHintsOfNew(*made, hints);
  *newcomm = Comm::Give(made);
  *request = Request::Give(started);
  return {};
}

// MPI_COMM_NULL for processes that are not in the result.
Error GiveMade(Error error, const Ref<Comm>& made, MPI_Comm* newcomm) {
  if (error.ok() && made) *newcomm = Comm::Give(made);
  return error;
}

Error Clear(MPI_Comm* newcomm, const char* argument) {
  WEFT_MPI_TRY(CheckNotNull(newcomm, argument));
  *newcomm = MPI_COMM_NULL;
  return {};
}

Error CheckSubgroup(const Group& group, const Comm& comm) {
  for (ProcessId process : group.members) {
    if (comm.local->RankOf(process) != MPI_UNDEFINED) continue;
    return Error(MPI_ERR_GROUP,
                 "rank " + std::to_string(group.RankOf(process)) + " of group is not in the group of comm");
  }
  return {};
}

// MPI_COMM_TYPE_HW_GUIDED asks for a kind of hardware; we know of one, the memory that a host's processes share.
constexpr char kHardware[] = "mpi_hw_resource_type";
constexpr char kMemory[] = "mpi_shared_memory";

bool IsMemory(const Info* info) {
  const std::optional<std::string> wanted = info == nullptr ? std::nullopt : info->Get(kHardware);
  return wanted == kMemory;
}

// MPIX_COMM_TYPE_NEIGHBORHOOD says by a hint what neighbours have in common, and gives no communicator for hints that are not known: all but this
// one ask for what only the network's switches know ("network_topo").
std::string CommonDirectory(const Info* info) {
  const std::optional<std::string> directory = info == nullptr ? std::nullopt : info->Get("nbhd_common_dirname");
  return directory.value_or("");
}

// `info`: MPI_COMM_TYPE_HW_UNGUIDED says there what hardware it is.
Error SplitByType(Comm& comm, int split_type, int key, Info* info, Ref<Comm>* made) {
  switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
      return SplitByHost(comm, key, made);
    case MPI_UNDEFINED:
      return SplitByHost(comm, key, made, false);
    case MPI_COMM_TYPE_HW_GUIDED:
      return SplitByHost(comm, key, made, IsMemory(info));
    case MPI_COMM_TYPE_HW_UNGUIDED: {
      // Parts that are smaller than the whole, or none.
      WEFT_MPI_TRY(SplitByHost(comm, key, made));
      if (*made && (*made)->size() == comm.size()) *made = nullptr;
      if (*made && info != nullptr) info->Set(kHardware, kMemory);
      return {};
    }
    case MPIX_COMM_TYPE_NEIGHBORHOOD:
      return SplitByDirectory(comm, CommonDirectory(info), key, made);
    default:
      return Error(MPI_ERR_ARG,
                   "split_type " + std::to_string(split_type) + " is not a MPI_COMM_TYPE_... or MPI_UNDEFINED");
  }
}

// Of the local leader, which alone knows them.
Error FindPeer(const Comm& local, MPI_Comm peer_comm, int remote_leader, Comm** peer) {
  WEFT_MPI_TRY(FindComm(peer_comm, "peer_comm", peer));
  const int size = (*peer)->remote_size();
  if (remote_leader < 0 || remote_leader >= size) {
    return Error(MPI_ERR_RANK, "remote_leader " + std::to_string(remote_leader) + " is not a rank of peer_comm (0 to " +
                                   std::to_string(size - 1) + ")");
  }
  if (!(*peer)->inter && remote_leader == (*peer)->rank) {
    return Error(MPI_ERR_RANK, "remote_leader " + std::to_string(remote_leader) + " is the local leader itself");
  }
  const int in_local = local.local->RankOf((*peer)->peer(remote_leader));
  if (in_local == MPI_UNDEFINED) return {};
  return Error(MPI_ERR_COMM, "the groups overlap: remote_leader " + std::to_string(remote_leader) +
                                 " of peer_comm is rank " + std::to_string(in_local) + " of local_comm");
}

}  // namespace

// Hints are not passed on (MPI 4.0 section 7.4.2).
int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_dup", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    return DuplicateWithAttributes(c, nullptr, newcomm);
  });
}
WEFT_MPI_ALIAS(Comm_dup)

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_dup_with_info", comm, [&](Comm& c) -> Error {
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    return DuplicateWithAttributes(c, hints, newcomm);
  });
}
WEFT_MPI_ALIAS(Comm_dup_with_info)

int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  return OnComm("MPI_Comm_idup", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    return StartDuplicateWithAttributes(c, nullptr, newcomm, request);
  });
}
WEFT_MPI_ALIAS(Comm_idup)

int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  return OnComm("MPI_Comm_idup_with_info", comm, [&](Comm& c) -> Error {
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    return StartDuplicateWithAttributes(c, hints, newcomm, request);
  });
}
WEFT_MPI_ALIAS(Comm_idup_with_info)

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_create", comm, [&](Comm& c) -> Error {
    Group* members;
    WEFT_MPI_TRY(FindGroup(group, "group", &members));
    WEFT_MPI_TRY(CheckSubgroup(*members, c));
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    const Ref<Comm> alive(&c);
    Ref<Comm> made;
    return GiveMade(CreateFromGroup(c, Ref<Group>(members), &made), made, newcomm);
  });
}
WEFT_MPI_ALIAS(Comm_create)

int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_create_group", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    Group* members;
    WEFT_MPI_TRY(FindGroup(group, "group", &members));
    WEFT_MPI_TRY(CheckSubgroup(*members, c));
    WEFT_MPI_TRY(CheckSendTag(tag));
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    const Ref<Comm> alive(&c);
    Ref<Comm> made;
    return GiveMade(CreateGroup(c, Ref<Group>(members), tag, &made), made, newcomm);
  });
}
WEFT_MPI_ALIAS(Comm_create_group)

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_split", comm, [&](Comm& c) -> Error {
    if (color < 0 && color != MPI_UNDEFINED) {
      return Error(MPI_ERR_ARG, "color " + std::to_string(color) + " is negative and not MPI_UNDEFINED");
    }
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    const Ref<Comm> alive(&c);
    Ref<Comm> made;
    return GiveMade(Split(c, color, key, &made), made, newcomm);
  });
}
WEFT_MPI_ALIAS(Comm_split)

int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  return OnComm("MPI_Comm_split_type", comm, [&](Comm& c) -> Error {
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    WEFT_MPI_TRY(Clear(newcomm, "newcomm"));
    const Ref<Comm> alive(&c);
    Ref<Comm> made;
    WEFT_MPI_TRY(SplitByType(c, split_type, key, hints, &made));
    if (made) SetHintsOfNew(*made, hints);
    return GiveMade({}, made, newcomm);
  });
}
WEFT_MPI_ALIAS(Comm_split_type)

int PMPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                          MPI_Comm* newintercomm) {
  return OnComm("MPI_Intercomm_create", local_comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckIntra(c));
    if (local_leader < 0 || local_leader >= c.size()) {
      return Error(MPI_ERR_RANK, "local_leader " + std::to_string(local_leader) +
                                     " is not a rank of local_comm (0 to " + std::to_string(c.size() - 1) + ")");
    }
    WEFT_MPI_TRY(CheckSendTag(tag));
    WEFT_MPI_TRY(Clear(newintercomm, "newintercomm"));
    Comm* peer = nullptr;
    Error refusal;
    if (c.rank == local_leader) refusal = FindPeer(c, peer_comm, remote_leader, &peer);
    const Ref<Comm> alive(&c), peer_alive(peer);
    Ref<Comm> made;
    return GiveMade(CreateInter(c, local_leader, peer, remote_leader, tag, &made, refusal), made, newintercomm);
  });
}
WEFT_MPI_ALIAS(Intercomm_create)

int PMPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm) {
  return OnComm("MPI_Intercomm_merge", intercomm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckInter(c));
    WEFT_MPI_TRY(Clear(newintracomm, "newintracomm"));
    const Ref<Comm> alive(&c);
    Ref<Comm> made;
    return GiveMade(MergeInter(c, high != 0, &made), made, newintracomm);
  });
}
WEFT_MPI_ALIAS(Intercomm_merge)
