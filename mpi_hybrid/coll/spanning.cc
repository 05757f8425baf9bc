#include "mpi_hybrid/coll/spanning.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/group_tree.h"
#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/coll/tags.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/foreign.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

// Tags of the protocol, beside those of Clients. The messages are in the collective context.
enum ProtocolTag : int { kDuplicateTag = 210, kMergeTag = 220, kFreeTag = 230 };

ImpiWorld& TheWorld() { return *ThisJob().impi; }
ProcessId OwnId() { return ThisJob().processes.self(); }
const Datatype& Word() { return *Datatype::Find(MPI_UINT64_T); }  // IMPI_UINT8
const Datatype& Int() { return *Datatype::Find(MPI_INT); }

Clients::Limits LimitsOfJob() {
  const impi::Job& job = TheWorld().job();
  // LAM/MPI is linear with IMPI_C_COLL_MAXLINEAR clients, too (section 2.3.5 has that many logarithmic).
  return {.long_from = job.crossover_size(), .tree_from = job.max_linear() + (TheWorld().HasLam() ? 1 : 0)};
}

std::unique_ptr<Clients> MakeClients(const Comm& comm) {
  std::vector<int> clients;
  for (const ProcessId process : comm.local->members) clients.push_back(TheWorld().ClientOf(process).value);
  return std::make_unique<Clients>(comm.rank, clients, LimitsOfJob());
}

// The new context of a communicator that all of `comm`, an intracommunicator, make (4.4, 4.6, 4.7).
Error AgreeOnContext(Comm& comm, uint64_t* on_wire) {
  const uint64_t seen = TheWorld().seen_context();
  uint64_t highest = 0;
  WEFT_MPI_TRY(AllReduce(&seen, &highest, 1, Word(), *Op::Find(MPI_MAX), comm));
  return TheWorld().TakeContext(highest, on_wire);
}

Error Open(Ref<Comm> comm, uint64_t on_wire, uint64_t identity, Ref<Comm>* made) {
  WEFT_MPI_TRY(OpenForeignContext(*comm, on_wire));
  comm->clients = std::make_unique<Spanning>(*comm);
  comm->set_identity(identity);
  *made = std::move(comm);
  return {};
}

// An intracommunicator with `group`, which this process is in. All processes of `parent` call it with a tag that is the same at all.
Error MakeSpanning(Comm& parent, const Ref<Group>& group, uint64_t on_wire, int tag, Ref<Comm>* made) {
  if (AnyForeign(group->members)) return Open(MakeIntra(parent, group, OwnId()), on_wire, parent.IdentityOfChild(on_wire), made);
  GroupTree tree(parent, *group, tag);
  OwnedIds ids;
  WEFT_MPI_TRY(AgreeInTree(tree, on_wire, 1, /*willing=*/true, &ids));
  Ref<Comm> comm = MakeIntra(parent, group, OwnId());
  ids.GiveTo(*comm);
  *made = std::move(comm);
  return {};
}

// With rank 0 of the remote group. Both directions at once, so that neither waits for the other to receive.
Error Swap(const void* mine, void* theirs, MPI_Aint mine_count, MPI_Aint their_count, const Datatype& type, Comm& comm, int remote, int tag, Channel channel) {
  Request* receive = nullptr;
  WEFT_MPI_TRY(StartReceive(theirs, their_count, type, remote, tag, comm, channel, &receive));
  Error sent = Send(mine, mine_count, type, remote, tag, comm, SendMode::kStandard, channel);
  WEFT_MPI_TRY(Finish({}, receive));
  return sent;
}

// What the groups of an intercommunicator tell each other. Each process speaks with the leader of the other group, its rank 0: others send `up` words, the
// leaders swap `down` words and tell as many to all others. The first word is the highest of all; the second that of the group that a message comes from.
struct Told {
  uint64_t highest, second;
};
Error CrissCross(Comm& inter, int tag, MPI_Aint up, MPI_Aint down, Told mine, Told* told) {
  constexpr Channel kChannel = Channel::kCollective;
  if (inter.rank != 0) {
    WEFT_MPI_TRY(Send(&mine.highest, up, Word(), 0, tag, inter, SendMode::kStandard, kChannel));
    return Receive(told, down, Word(), 0, tag, inter, kChannel, nullptr);
  }
  for (int rank = 1; rank < inter.remote_size(); ++rank) {
    uint64_t theirs = 0;
    WEFT_MPI_TRY(Receive(&theirs, up, Word(), rank, tag, inter, kChannel, nullptr));
    mine.highest = std::max(mine.highest, theirs);
  }
  WEFT_MPI_TRY(Swap(&mine, told, down, down, Word(), inter, 0, tag, kChannel));
  told->highest = mine.highest = std::max(mine.highest, told->highest);
  for (int rank = 1; rank < inter.remote_size(); ++rank) {
    WEFT_MPI_TRY(Send(&mine, down, Word(), rank, tag, inter, SendMode::kStandard, kChannel));
  }
  return {};
}

Error NotInImpi(const std::string& what) {
  return Error(MPI_ERR_UNSUPPORTED_OPERATION, what + " on a communicator that spans clients of an IMPI job; use one of a single client (IMPI_CLIENT_COLOR)");
}

}  // namespace

Spanning::Spanning(const Comm& comm) : context_(comm.receive_context), clients_(comm.inter ? nullptr : MakeClients(comm)) {}

Spanning::~Spanning() { CloseForeignContext(context_); }

Error CheckCollective(const Comm& comm, bool by_protocol) {
  if (comm.inter) return NotInImpi("IMPI has no collectives of intercommunicators, so there are none");
  if (by_protocol) return {};
  if (TheWorld().job().limits().tag >= tags::kLocal - 1) return {};
  return NotInImpi("IMPI has only blocking collectives, and the tag bound of the job, " + std::to_string(TheWorld().job().limits().tag) +
                   ", is too low for others: there are none");
}

Channel ChannelBetweenClients(const Comm& comm, int peer, int tag) {
  const bool with_lam = TheWorld().IsLam(TheWorld().ClientOf(comm.peer(peer)));
  return with_lam && tag == Clients::kReduceTag ? Channel::kPointToPoint : Channel::kCollective;
}

Error CheckWithinClient(const Comm& comm, const char* what) {
  return comm.clients == nullptr ? Error() : NotInImpi(std::string("there are no ") + what);
}

Error SpanWorld(Comm& world) {
  WEFT_MPI_TRY(OpenForeignContext(world, 0));
  world.clients = std::make_unique<Spanning>(world);
  return {};
}

Error DuplicateSpanning(Comm& comm, Ref<Comm>* made) {
  uint64_t on_wire = 0;
  if (!comm.inter) {
    WEFT_MPI_TRY(AgreeOnContext(comm, &on_wire));
  } else {
    Told told{};
    WEFT_MPI_TRY(CrissCross(comm, kDuplicateTag, 1, 1, {TheWorld().seen_context(), 0}, &told));
    WEFT_MPI_TRY(TheWorld().TakeContext(told.highest, &on_wire));
  }
  Ref<Comm> copy = comm.inter ? MakeInter(comm, comm.local, comm.remote, OwnId()) : MakeIntra(comm, comm.local, OwnId());
  copy->is_local_first = comm.is_local_first;
  if (comm.topology != nullptr) copy->topology = std::make_unique<Topology>(*comm.topology);
  return Open(std::move(copy), on_wire, comm.IdentityOfChild(on_wire), made);
}

Error CreateFromGroupSpanning(Comm& parent, const Ref<Group>& group, Ref<Comm>* made) {
  if (parent.inter) return NotInImpi("IMPI makes no communicators of parts of an intercommunicator, so there are none");
  uint64_t on_wire = 0;
  WEFT_MPI_TRY(AgreeOnContext(parent, &on_wire));
  const int tag = tags::TakeNext(parent);
  if (group->RankOf(OwnId()) == MPI_UNDEFINED) return {};
  return MakeSpanning(parent, group, on_wire, tag, made);
}

Error SplitSpanning(Comm& comm, int color, int key, Ref<Comm>* made) {
  if (comm.inter) return NotInImpi("IMPI does not split intercommunicators, so this is not possible");
  uint64_t on_wire = 0;
  WEFT_MPI_TRY(AgreeOnContext(comm, &on_wire));
  const int tag = tags::TakeNext(comm);
  using Entry = std::array<int, 3>;  // color, key, rank
  const Entry mine{color, key, comm.rank};
  std::vector<Entry> all(static_cast<size_t>(comm.size()));
  WEFT_MPI_TRY(AllGather(Uniform{mine.data(), 3, &Int()}, Uniform{all.data(), 3, &Int()}, comm));
  if (color == MPI_UNDEFINED) return {};
  std::erase_if(all, [&](const Entry& one) { return one[0] != color || one[2] < 0 || one[2] >= comm.size(); });
  std::sort(all.begin(), all.end());
  std::vector<int> ranks;
  for (const Entry& one : all) ranks.push_back(one[2]);
  return MakeSpanning(comm, Include(*comm.local, ranks), on_wire, tag, made);
}

Error MergeSpanning(Comm& inter, bool high, Ref<Comm>* made) {
  Told told{};
  WEFT_MPI_TRY(CrissCross(inter, kMergeTag, 1, 2, {TheWorld().seen_context(), high ? 1u : 0u}, &told));
  uint64_t on_wire = 0;
  WEFT_MPI_TRY(TheWorld().TakeContext(told.highest, &on_wire));
  const bool remote_high = told.second != 0;
  const bool local_first =
      remote_high != high ? remote_high : TheWorld().RankOf(inter.local->members[0]) < TheWorld().RankOf(inter.remote->members[0]);
  const Ref<Group> group = local_first ? Union(*inter.local, *inter.remote) : Union(*inter.remote, *inter.local);
  return Open(MakeIntra(inter, group, OwnId()), on_wire, inter.IdentityOfChild(on_wire), made);
}

Error BarrierBeforeFree(Comm& comm) {
  if (!comm.inter) return Barrier(comm);
  Told told{};
  return CrissCross(comm, kFreeTag, 0, 0, {}, &told);
}

// --- MPI_Intercomm_create ---

namespace {

enum How : int { kOwn = 0, kProtocol = 1, kRefused = 2 };

// The leader: whether the protocol says how the intercommunicator is made. It does if a communicator spans clients that takes part, which a leader sees of its
// own group and of `peer`. If `peer` does not, both leaders are of this client and tell each other.
Error ChooseAsLeader(const Comm& local, Comm& peer, int remote_leader, int tag, int* how) {
  *how = local.clients != nullptr || peer.clients != nullptr ? kProtocol : kOwn;
  if (peer.clients != nullptr || !TheWorld().IsMember(peer.peer(remote_leader))) return {};
  int theirs = kOwn;
  WEFT_MPI_TRY(Swap(how, &theirs, 1, 1, Int(), peer, remote_leader, tags::OfProgram(tag), Channel::kCollective));
  *how = std::max(*how, theirs);
  return {};
}

// World ranks of the remote group, with what is wrong with them.
Error FindRemote(const Comm& local, const std::vector<int>& ranks, Ref<Group>* remote) {
  std::vector<ProcessId> members;
  const int count = static_cast<int>(TheWorld().processes().size());
  for (const int rank : ranks) {
    if (rank < 0 || rank >= count) return Error(MPI_ERR_OTHER, "the remote leader says that its group has rank " + std::to_string(rank) + " of MPI_COMM_WORLD, which has " + std::to_string(count));
    const ProcessId process = TheWorld().ProcessOf(impi::WorldRank(rank));
    if (local.local->RankOf(process) != MPI_UNDEFINED) {
      return Error(MPI_ERR_COMM, "the groups overlap: rank " + std::to_string(local.local->RankOf(process)) + " of local_comm is in the remote group too");
    }
    members.push_back(process);
  }
  std::vector<ProcessId> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return Error(MPI_ERR_OTHER, "the remote leader says that a process is twice in its group");
  *remote = MakeGroup(std::move(members));
  return {};
}

// The specification has MPI_INT as the type of the first exchange, of 64-bit words. IMPI_UINT8 is meant.
Error MeetByProtocol(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, uint64_t* on_wire, Ref<Group>* remote) {
  constexpr Channel kChannel = Channel::kPointToPoint;
  const bool leads = local.rank == local_leader;
  const uint64_t seen = TheWorld().seen_context();
  std::array<uint64_t, 2> ours{0, static_cast<uint64_t>(local.size())}, theirs{};  // context, size
  WEFT_MPI_TRY(Reduce(&seen, &ours[0], 1, Word(), *Op::Find(MPI_MAX), local_leader, local));
  if (leads) {
    WEFT_MPI_TRY(Swap(ours.data(), theirs.data(), 2, 2, Word(), *peer, remote_leader, tag, kChannel));
    theirs[0] = std::max(theirs[0], ours[0]);
  }
  WEFT_MPI_TRY(Broadcast(theirs.data(), 2, Word(), local_leader, local));
  WEFT_MPI_TRY(TheWorld().TakeContext(theirs[0], on_wire));
  if (theirs[1] == 0 || theirs[1] > TheWorld().processes().size()) {
    return Error(MPI_ERR_OTHER, "the remote leader says that its group has " + std::to_string(theirs[1]) + " processes, and MPI_COMM_WORLD has " +
                                    std::to_string(TheWorld().processes().size()));
  }
  std::vector<int> our_ranks, their_ranks(theirs[1]);
  for (const ProcessId process : local.local->members) our_ranks.push_back(TheWorld().RankOf(process).value);
  const auto their_count = static_cast<MPI_Aint>(their_ranks.size());
  if (leads) {
    WEFT_MPI_TRY(Swap(our_ranks.data(), their_ranks.data(), local.size(), their_count, Int(), *peer, remote_leader, tag, kChannel));
  }
  WEFT_MPI_TRY(Broadcast(their_ranks.data(), their_count, Int(), local_leader, local));
  return FindRemote(local, their_ranks, remote);
}

}  // namespace

Error CreateInterSpanning(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Ref<Comm>* made, const Error& refusal) {
  int how = local.clients != nullptr ? kProtocol : kOwn;
  Error chosen;
  if (local.rank == local_leader) {
    chosen = refusal.ok() ? ChooseAsLeader(local, *peer, remote_leader, tag, &how) : refusal;
    if (!chosen.ok()) how = kRefused;
  }
  if (local.clients == nullptr) {
    const Error told = Broadcast(&how, 1, Int(), local_leader, local);
    WEFT_MPI_TRY(std::move(chosen));
    WEFT_MPI_TRY(told);
    if (how == kRefused) return Error(MPI_ERR_OTHER, "the local leader could not take part");
  }
  WEFT_MPI_TRY(std::move(chosen));
  if (how == kOwn) return {};
  uint64_t on_wire = 0;
  Ref<Group> remote;
  WEFT_MPI_TRY(MeetByProtocol(local, local_leader, peer, remote_leader, tag, &on_wire, &remote));
  if (!AnyForeign(local.local->members) && !AnyForeign(remote->members)) return {};
  return Open(MakeInter(local, local.local, remote, OwnId()), on_wire, local.IdentityOfChild(on_wire), made);
}

}  // namespace weft::mpi
