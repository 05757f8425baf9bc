#include "mpi_hybrid/coll/make_comm.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/coll/tags.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {
namespace {

ProcessId Self(const Comm& comm) { return comm.local->members[static_cast<size_t>(comm.rank)]; }

Comm& LocalOf(Comm& comm) { return comm.inter ? *comm.local_comm : comm; }

Uniform Words(const int* words, size_t count) { return {words, static_cast<MPI_Aint>(count), Datatype::Find(MPI_INT)}; }

// The `width` ints of every process of the local and the remote group, by rank.
Error GatherWords(Comm& comm, const int* mine, size_t width, std::vector<int>* local, std::vector<int>* remote) {
  local->resize(width * static_cast<size_t>(comm.size()));
  WEFT_MPI_TRY(AllGather(Words(mine, width), Words(local->data(), width), LocalOf(comm)));
  if (!comm.inter) {
    *remote = *local;
    return {};
  }
  remote->resize(width * static_cast<size_t>(comm.remote_size()));
  return AllGather(Words(mine, width), Words(remote->data(), width), comm);
}

// The last step of constructors over all of `parent`: contexts, also when this process is in neither group of the
// result; a communicator if it is. Intracommunicators: `remote` is `local`. Every process that gets one has the groups
// of those that it contains.
Error MakeFromGroups(Comm& parent, const Ref<Group>& local, const Ref<Group>& remote, Ref<Comm>* made) {
  OwnedIds ids;
  Error agreed = Agreement::Run(LocalOf(parent), parent.inter ? 2 : 1, &ids);
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
  WEFT_MPI_TRY(Finish(ReservedTag(parent).StartAnd(&context, std::span(&remote_context, 1), &request), request));
  WEFT_MPI_TRY(std::move(agreed));
  if (remote_context == kNoContext) return RemoteFailed();
  if (!member || remote->members.empty()) return {};
  Ref<Comm> comm = MakeInter(parent, local, remote, Self(parent));
  GiveContexts(*comm, std::move(ids), static_cast<ContextId>(remote_context));
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

// A number that processes have in common when they can share memory: the same running kernel, and the same /dev/shm.
uint64_t HostNumber() {
  std::string identity;
  if (const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); fd >= 0) {
    char text[64];
    if (const ssize_t length = read(fd, text, sizeof text); length > 0)
      identity.assign(text, static_cast<size_t>(length));
    close(fd);
  }
  char name[256] = {};
  if (identity.empty() && gethostname(name, sizeof name - 1) == 0) identity = name;
  struct stat shared {};
  if (stat("/dev/shm", &shared) == 0) identity += std::to_string(shared.st_dev) + ":" + std::to_string(shared.st_ino);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char c : identity) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// "and" over the processes of a group only: up and down a binomial tree, over the communicator that they have in
// common.
class GroupReduction {
 public:
  GroupReduction(Comm& parent, const Group& group, int tag)
      : parent_(parent), group_(group), tag_(tags::OfProgram(tag)) {}

  Error And(std::span<uint64_t> words) {
    const int rank = group_.RankOf(Self(parent_)), size = group_.size();
    std::vector<uint64_t> other(words.size());
    int mask = 1;
    for (; mask < size && (rank & mask) == 0; mask *= 2) {
      if (rank + mask >= size) continue;
      WEFT_MPI_TRY(Get(other, rank + mask));
      for (size_t i = 0; i < words.size(); ++i) words[i] &= other[i];
    }
    if (rank != 0) {
      WEFT_MPI_TRY(Put(words, rank - mask));
      WEFT_MPI_TRY(Get(words, rank - mask));
    }
    for (mask /= 2; mask > 0; mask /= 2) {
      if (rank + mask < size) WEFT_MPI_TRY(Put(words, rank + mask));
    }
    return {};
  }

 private:
  int ParentRank(int rank) const { return parent_.local->RankOf(group_.members[static_cast<size_t>(rank)]); }
  Error Put(std::span<const uint64_t> words, int rank) {
    return Send(words.data(), static_cast<MPI_Aint>(words.size()), *Datatype::Find(MPI_UINT64_T), ParentRank(rank),
                tag_, parent_, SendMode::kStandard, Channel::kCollective);
  }
  Error Get(std::span<uint64_t> words, int rank) {
    return Receive(words.data(), static_cast<MPI_Aint>(words.size()), *Datatype::Find(MPI_UINT64_T), ParentRank(rank),
                   tag_, parent_, Channel::kCollective, nullptr);
  }

  Comm& parent_;
  const Group& group_;
  const int tag_;
};

}  // namespace

Error CreateFromGroup(Comm& parent, const Ref<Group>& group, Ref<Comm>* made) {
  *made = nullptr;
  if (!parent.inter) return MakeFromGroups(parent, group, group, made);
  // Who is in the other side's group, and where.
  const int place = group->RankOf(Self(parent));
  std::vector<int> local, remote;
  WEFT_MPI_TRY(GatherWords(parent, &place, 1, &local, &remote));
  std::vector<std::pair<int, int>> places;
  for (int rank = 0; rank < parent.remote_size(); ++rank) {
    if (const int at = remote[static_cast<size_t>(rank)]; at != MPI_UNDEFINED) places.emplace_back(at, rank);
  }
  std::sort(places.begin(), places.end());
  std::vector<ProcessId> members;
  for (const auto& [at, rank] : places) members.push_back(parent.peer(rank));
  return MakeFromGroups(parent, group, MakeGroup(std::move(members)), made);
}

Error CreateGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made) {
  *made = nullptr;
  const ProcessId self = Self(parent);
  if (group->RankOf(self) == MPI_UNDEFINED) return {};
  GroupReduction reduction(parent, *group, tag);
  ContextSearch search(TheContextPool(),
                       uint64_t{parent.receive_context} << 32 | static_cast<uint32_t>(tags::OfProgram(tag)), 1);
  for (;;) {
    WEFT_MPI_TRY(reduction.And(search.Begin()));
    const ContextSearch::Outcome outcome = search.End();
    if (outcome == ContextSearch::Outcome::kExhausted) return NoContextsLeft();
    if (outcome == ContextSearch::Outcome::kAgreed) break;
  }
  OwnedIds ids(search.ids());
  Ref<Comm> comm = MakeIntra(parent, group, self);
  ids.GiveTo(*comm);
  *made = std::move(comm);
  return {};
}

Error Split(Comm& comm, int color, int key, Ref<Comm>* made) {
  *made = nullptr;
  const int mine[2] = {color, key};
  std::vector<int> local, remote;
  WEFT_MPI_TRY(GatherWords(comm, mine, 2, &local, &remote));
  if (color == MPI_UNDEFINED) return MakeFromGroups(comm, MakeGroup({}), MakeGroup({}), made);
  return MakeFromGroups(comm, OfColor(*comm.local, local, color), OfColor(*comm.remote, remote, color), made);
}

Error SplitByHost(Comm& comm, int key, Ref<Comm>* made, bool take_part) {
  *made = nullptr;
  const uint64_t number = HostNumber();
  const int mine[2] = {static_cast<int>(number), static_cast<int>(number >> 32)};
  std::vector<int> first, second;
  WEFT_MPI_TRY(GatherWords(comm, mine, 2, &first, &second));
  // The color is the place of the host's first process, counted alike on both sides of an intercommunicator.
  if (comm.inter) {
    if (!comm.is_local_first) std::swap(first, second);
    first.insert(first.end(), second.begin(), second.end());
  }
  int color = 0;
  while (first[2 * static_cast<size_t>(color)] != mine[0] || first[2 * static_cast<size_t>(color) + 1] != mine[1])
    ++color;
  return Split(comm, take_part ? color : MPI_UNDEFINED, key, made);
}

namespace {

const Datatype& Bytes() { return *Datatype::Find(MPI_BYTE); }

// The end of `local` at which a new intercommunicator is made: its leader talks to the other group's, and tells the
// others.
class InterEnd {
 public:
  InterEnd(Comm& local, int leader, Comm* peer, int remote_leader, int tag)
      : local_(local), leader_(leader), peer_(peer), remote_leader_(remote_leader), tag_(tags::OfProgram(tag)) {}

  // The processes of the remote group. `refusal`: the leader does not even try.
  Error LearnMembers(const Error& refusal, std::vector<ProcessId>* members) {
    Error met = refusal;
    uint32_t size = 0;
    if (is_leader() && met.ok()) {
      const auto own_size = static_cast<uint32_t>(local_.size());
      met = Swap(&own_size, &size, sizeof size);
      members->resize(size);
      if (met.ok()) met = SwapMembers(members);
    }
    uint32_t header[2] = {static_cast<uint32_t>(met.mpi_class()), size};
    WEFT_MPI_TRY(Tell(header, sizeof header));
    if (!met.ok()) return met;
    if (header[0] != MPI_SUCCESS) {
      return Error(static_cast<int>(header[0]),
                   "rank " + std::to_string(leader_) + ", the local leader, met with an error of this class");
    }
    members->resize(header[1]);
    return Tell(members->data(), members->size() * sizeof(ProcessId));
  }

  // Gives `context` for the remote group's, kNoContext when there was none to give.
  Error LearnContext(ContextId context, ContextId* remote) {
    Error met;
    *remote = kNoContext;
    if (is_leader()) met = Swap(&context, remote, sizeof context);
    WEFT_MPI_TRY(Tell(remote, sizeof *remote));
    return met;
  }

 private:
  bool is_leader() const { return local_.rank == leader_; }

  // Both directions at once, so that neither leader waits for the other to receive.
  Error Swap(const void* mine, size_t mine_bytes, void* theirs, size_t theirs_bytes) {
    Request* receive = nullptr;
    WEFT_MPI_TRY(StartReceive(theirs, static_cast<MPI_Aint>(theirs_bytes), Bytes(), remote_leader_, tag_, *peer_,
                              Channel::kCollective, &receive));
    Error sent = Send(mine, static_cast<MPI_Aint>(mine_bytes), Bytes(), remote_leader_, tag_, *peer_,
                      SendMode::kStandard, Channel::kCollective);
    Error received = Finish({}, receive);
    return sent.ok() ? std::move(received) : std::move(sent);
  }
  Error Swap(const void* mine, void* theirs, size_t bytes) { return Swap(mine, bytes, theirs, bytes); }
  Error SwapMembers(std::vector<ProcessId>* theirs) {
    const std::vector<ProcessId>& mine = local_.local->members;
    return Swap(mine.data(), mine.size() * sizeof(ProcessId), theirs->data(), theirs->size() * sizeof(ProcessId));
  }

  Error Tell(void* data, size_t bytes) {
    return Broadcast(data, static_cast<MPI_Aint>(bytes), Bytes(), leader_, local_);
  }

  Comm& local_;
  const int leader_;
  Comm* const peer_;
  const int remote_leader_, tag_;
};

}  // namespace

Error CreateInter(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Ref<Comm>* made,
                  const Error& refusal) {
  *made = nullptr;
  InterEnd end(local, local_leader, peer, remote_leader, tag);
  std::vector<ProcessId> members;
  WEFT_MPI_TRY(end.LearnMembers(refusal, &members));
  const Ref<Group> remote = MakeGroup(std::move(members));
  const Ref<Group> common = Intersection(*local.local, *remote);
  if (common->size() > 0) {
    return Error(MPI_ERR_COMM, "the groups overlap: rank " + std::to_string(local.local->RankOf(common->members[0])) +
                                   " of local_comm is in the remote group too");
  }
  OwnedIds ids;
  Error agreed = Agreement::Run(local, 2, &ids);
  ContextId remote_context;
  WEFT_MPI_TRY(end.LearnContext(agreed.ok() ? ids.context(0) : kNoContext, &remote_context));
  WEFT_MPI_TRY(std::move(agreed));
  if (remote_context == kNoContext) return RemoteFailed();
  Ref<Comm> comm = MakeInter(local, local.local, remote, Self(local));
  GiveContexts(*comm, std::move(ids), remote_context);
  *made = std::move(comm);
  return {};
}

Error MergeInter(Comm& inter, bool high, Ref<Comm>* made) {
  *made = nullptr;
  constexpr uint64_t kHigh = 2, kLow = 4;
  ReservedTag within(*inter.local_comm), across(inter);
  // Both sides look in the same places.
  ContextSearch search(TheContextPool(), uint64_t{inter.send_context ^ inter.receive_context} << 32 | across.tag(), 1);
  uint64_t ours = 0, theirs = 0;
  for (;;) {
    const std::span<uint64_t> words = search.Begin(high ? kHigh : kLow);
    std::vector<uint64_t> remote(words.size());
    Request* request = nullptr;
    WEFT_MPI_TRY(Finish(across.StartAnd(words.data(), remote, &request), request));
    WEFT_MPI_TRY(Finish(within.StartAnd(words, &request), request));
    ours = words.back();
    theirs = remote.back();
    for (size_t i = 0; i < words.size(); ++i) words[i] &= remote[i];
    const ContextSearch::Outcome outcome = search.End();
    if (outcome == ContextSearch::Outcome::kExhausted) return NoContextsLeft();
    if (outcome == ContextSearch::Outcome::kAgreed) break;
  }
  OwnedIds ids(search.ids());
  if ((ours & (kHigh | kLow)) == 0)
    return Error(MPI_ERR_ARG, "high is not the same at all processes of the local group");
  if ((theirs & (kHigh | kLow)) == 0)
    return Error(MPI_ERR_ARG, "high is not the same at all processes of the remote group");
  const bool local_first = ((ours ^ theirs) & kHigh) != 0 ? !high : inter.is_local_first;
  const Ref<Group> group = local_first ? Union(*inter.local, *inter.remote) : Union(*inter.remote, *inter.local);
  Ref<Comm> comm = MakeIntra(inter, group, Self(inter));
  ids.GiveTo(*comm);
  *made = std::move(comm);
  return {};
}

Error Free(Ref<Comm>) { return {}; }  // ~Comm returns the contexts

}  // namespace weft::mpi
