#include "mpi_hybrid/coll/make_comm.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/gather_words.h"
#include "mpi_hybrid/coll/group_tree.h"
#include "mpi_hybrid/coll/inter_end.h"
#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/coll/tags.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

ProcessId Self(const Comm& comm) { return comm.local->members[static_cast<size_t>(comm.rank)]; }

Comm& LocalOf(Comm& comm) { return comm.inter ? *comm.local_comm : comm; }

// Constructors are several steps, of which one may fail at a process and not at another, as when a third dies in it. Whoever
// has failed takes the steps that are left all the same, and says so in the last: nobody waits for one who went away.

// The last step of constructors over all of `parent`: contexts, also when this process is in neither group of the
// result; a communicator if it is. Intracommunicators: `remote` is `local`. Every process that gets one has the groups
// of those that it contains. `refusal`: why this process cannot take part, as in Duplicate.
Error MakeFromGroups(Comm& parent, const Ref<Group>& local, const Ref<Group>& remote, Ref<Comm>* made, const Error& refusal = {}) {
  OwnedIds ids;
  Error agreed = Agreement::Run(LocalOf(parent), parent.inter ? 2 : 1, &ids, refusal.ok());
  if (!refusal.ok()) agreed = refusal;
  const bool member = local->RankOf(Self(parent)) != MPI_UNDEFINED;
  if (!parent.inter) {
    WEFT_MPI_TRY(std::move(agreed));
    if (!member) return {};
    Ref<Comm> comm = MakeIntra(parent, local, Self(parent));
    ids.GiveTo(*comm);
    *made = std::move(comm);
    return {};
  }
  const uint64_t context = agreed.ok() ? ids.context(0) : kNoContext;
  uint64_t remote_context = kNoContext;
  Request* request = nullptr;
  ReservedTag tag(parent);
  Error met = Finish(tag.StartAnd(&context, std::span(&remote_context, 1), &request), request);
  WEFT_MPI_TRY(std::move(agreed));
  WEFT_MPI_TRY(std::move(met));
  if (remote_context == kNoContext) return RemoteFailed();
  if (!member || remote->members.empty()) return {};
  Ref<Comm> comm = MakeInter(parent, local, remote, Self(parent));
  GiveContexts(*comm, std::move(ids), static_cast<ContextId>(remote_context), parent.IdentityOfChild(tag.tag()));
  comm->is_local_first = parent.is_local_first;
  *made = std::move(comm);
  return {};
}

// The processes of `group` whose `color` it is, by key and then rank. `table`: color and key of each.
Ref<Group> OfColor(const Group& group, const std::vector<int>& table, int color) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (table[2 * static_cast<size_t>(rank)] == color) ranks.push_back(rank);
  }
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    return table[2 * static_cast<size_t>(a) + 1] < table[2 * static_cast<size_t>(b) + 1];
  });
  return Include(group, ranks);
}

}  // namespace

Error CreateFromGroup(Comm& parent, const Ref<Group>& group, Ref<Comm>* made) {
  *made = nullptr;
  if (parent.clients != nullptr) return CreateFromGroupSpanning(parent, group, made);
  if (!parent.inter) return MakeFromGroups(parent, group, group, made);
  // Who is in the other side's group, and where.
  const int place = group->RankOf(Self(parent));
  std::vector<int> local, remote;
  if (const Error gathered = GatherWords(parent, &place, 1, &local, &remote); !gathered.ok())
    return MakeFromGroups(parent, MakeGroup({}), MakeGroup({}), made, gathered);
  std::vector<std::pair<int, int>> places;
  for (int rank = 0; rank < parent.remote_size(); ++rank) {
    if (const int at = remote[static_cast<size_t>(rank)]; at != MPI_UNDEFINED) places.emplace_back(at, rank);
  }
  std::sort(places.begin(), places.end());
  std::vector<ProcessId> members;
  for (const auto& [at, rank] : places) members.push_back(parent.peer(rank));
  return MakeFromGroups(parent, group, MakeGroup(std::move(members)), made);
}

Error Split(Comm& comm, int color, int key, Ref<Comm>* made, const Error& refusal) {
  *made = nullptr;
  if (comm.clients != nullptr) {
    // The protocol cannot say that this process does not take part.
    Error split = SplitSpanning(comm, refusal.ok() ? color : MPI_UNDEFINED, key, made);
    return refusal.ok() ? std::move(split) : refusal;
  }
  const int mine[2] = {color, key};
  std::vector<int> local, remote;
  Error gathered = GatherWords(comm, mine, 2, &local, &remote);
  if (gathered.ok()) gathered = refusal;
  if (!gathered.ok()) return MakeFromGroups(comm, MakeGroup({}), MakeGroup({}), made, gathered);
  if (color == MPI_UNDEFINED) return MakeFromGroups(comm, MakeGroup({}), MakeGroup({}), made);
  return MakeFromGroups(comm, OfColor(*comm.local, local, color), OfColor(*comm.remote, remote, color), made);
}

namespace {

Error CheckApart(const Group& local, const Group& remote) {
  const Ref<Group> common = Intersection(local, remote);
  if (common->size() == 0) return {};
  return Error(MPI_ERR_COMM, "the groups overlap: rank " + std::to_string(local.RankOf(common->members[0])) +
                                 " of local_comm is in the remote group too");
}

// With rank 0 of the remote group; this is rank 0 of the local one. Both directions at once, so that neither waits for the other to receive.
Error SwapWords(std::span<const uint64_t> mine, std::span<uint64_t> theirs, Comm& inter, int tag) {
  const Datatype& words = *Datatype::Find(MPI_UINT64_T);
  const auto count = static_cast<MPI_Aint>(mine.size());
  Request* receive = nullptr;
  WEFT_MPI_TRY(StartReceive(theirs.data(), count, words, 0, tag, inter, Channel::kCollective, &receive));
  Error sent = Send(mine.data(), count, words, 0, tag, inter, SendMode::kStandard, Channel::kCollective);
  WEFT_MPI_TRY(Finish({}, receive));
  return sent;
}

}  // namespace

Error CreateInter(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Ref<Comm>* made,
                  const Error& refusal) {
  *made = nullptr;
  if (ThisJob().impi != nullptr) {
    WEFT_MPI_TRY(CreateInterSpanning(local, local_leader, peer, remote_leader, tag, made, refusal));
    if (*made) return {};
  }
  InterEnd end(local, local_leader, peer, remote_leader, tags::OfProgram(tag));
  return MakeInterAt(end, local, refusal, made, [&](bool willing, OwnedIds* ids) { return Agreement::Run(local, 2, ids, willing); });
}

Error MakeInterAt(InterEnd& end, Comm& local, const Error& refusal, Ref<Comm>* made, const std::function<Error(bool willing, OwnedIds* ids)>& agree) {
  Ref<Group> remote;
  Error met = end.LearnMembers(refusal, &remote);
  if (met.ok()) WEFT_MPI_TRY(CheckApart(*local.local, *remote));  // which both groups find
  OwnedIds ids;
  Error agreed = agree(met.ok(), &ids);
  ContextId remote_context;
  uint64_t identity;
  Error told = end.LearnContext(agreed.ok() ? ids.context(0) : kNoContext, ids.identity(), &remote_context, &identity);
  for (Error* failed : {&met, &agreed, &told}) WEFT_MPI_TRY(std::move(*failed));
  if (remote_context == kNoContext) return RemoteFailed();
  Ref<Comm> comm = MakeInter(local, local.local, remote, Self(local));
  GiveContexts(*comm, std::move(ids), remote_context, identity);
  *made = std::move(comm);
  return {};
}

// One tree for each group, whose roots tell each other what came up in it: what comes down is of both, and either all of both that it reaches go on, or none.
Error MergeInter(Comm& inter, bool high, Ref<Comm>* made) {
  *made = nullptr;
  if (inter.clients != nullptr) return MergeSpanning(inter, high, made);
  constexpr uint64_t kMet = 2, kFirst = 4, kSecond = kFirst << 2;  // of each side: high, and behind it low
  const uint64_t ours = inter.is_local_first ? kFirst : kSecond, theirs = kFirst ^ kSecond ^ ours;
  const uint64_t said = kMet | (high ? ours : ours << 1) | theirs | theirs << 1;
  const int across = tags::TakeNext(inter);
  GroupTree tree(*inter.local_comm, *inter.local, tags::TakeNext(*inter.local_comm));
  const auto swap_with_remote = [&](std::span<uint64_t> words) -> Error {
    std::vector<uint64_t> remote(words.size());
    WEFT_MPI_TRY(SwapWords(words, remote, inter, across));
    for (size_t i = 0; i < words.size(); ++i) words[i] &= remote[i];
    return {};
  };
  // Both sides look in the same places.
  ContextSearch search(TheContextPool(), uint64_t{inter.send_context ^ inter.receive_context} << 32 | static_cast<uint32_t>(across), 1);
  for (;;) {
    Error met = tree.And(search.Begin(said), swap_with_remote);
    const ContextSearch::Outcome outcome = search.End();
    OwnedIds ids(search.ids(), inter.IdentityOfChild(static_cast<uint32_t>(across)));
    const uint64_t heard = search.flags();
    WEFT_MPI_TRY(std::move(met));
    if ((heard & kMet) == 0) return Error(MPI_ERR_OTHER, "another process of the two groups could not take part");
    if ((heard & (ours | ours << 1)) == 0) return Error(MPI_ERR_ARG, "high is not the same at all processes of the local group");
    if ((heard & (theirs | theirs << 1)) == 0) return Error(MPI_ERR_ARG, "high is not the same at all processes of the remote group");
    if (outcome == ContextSearch::Outcome::kExhausted) return NoContextsLeft();
    if (outcome == ContextSearch::Outcome::kAgain) continue;
    const bool remote_high = (heard & theirs) != 0;
    const bool local_first = remote_high != high ? !high : inter.is_local_first;
    const Ref<Group> group = local_first ? Union(*inter.local, *inter.remote) : Union(*inter.remote, *inter.local);
    Ref<Comm> comm = MakeIntra(inter, group, Self(inter));
    ids.GiveTo(*comm);
    *made = std::move(comm);
    return {};
  }
}

Error BeforeFree(Comm& comm) { return comm.clients == nullptr ? Error() : BarrierBeforeFree(comm); }

}  // namespace weft::mpi
