#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/coll/tags.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/message.h"

// Constructors of communicators that only the processes of a group take part in.
namespace weft::mpi {
namespace {

ProcessId Self(const Comm& comm) { return comm.local->members[static_cast<size_t>(comm.rank)]; }

// "and" over the processes of a group only: up and down a binomial tree, over the communicator that they have in
// common.
class GroupReduction {
 public:
  GroupReduction(Comm& parent, const Group& group, int tag)
      : parent_(parent), group_(group), tag_(tags::OfProgram(tag)) {}

  // Of a process that did not hear of all, nothing is left of the words; those above and below it learn so.
  Error And(std::span<uint64_t> words) {
    const int rank = group_.RankOf(Self(parent_)), size = group_.size();
    std::vector<uint64_t> other(words.size());
    Error first;
    const auto note = [&](Error error, bool spoils) {
      if (!error.ok() && spoils) std::fill(words.begin(), words.end(), 0);
      if (!error.ok() && first.ok()) first = std::move(error);
    };
    int mask = 1;
    for (; mask < size && (rank & mask) == 0; mask *= 2) {
      if (rank + mask >= size) continue;
      note(Get(other, rank + mask), true);
      for (size_t i = 0; i < words.size() && first.ok(); ++i) words[i] &= other[i];
    }
    if (rank != 0) {
      note(Put(words, rank - mask), false);
      note(Get(words, rank - mask), true);
    }
    for (mask /= 2; mask > 0; mask /= 2) {
      if (rank + mask < size) note(Put(words, rank + mask), false);
    }
    return first;
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

// The agreement of the group's processes on a context, and the communicator.
Error MakeOfGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made) {
  constexpr uint64_t kMet = 2;
  GroupReduction reduction(parent, *group, tag);
  ContextSearch search(TheContextPool(),
                       uint64_t{parent.receive_context} << 32 | static_cast<uint32_t>(tags::OfProgram(tag)), 1);
  OwnedIds ids;
  for (;;) {
    Error met = reduction.And(search.Begin(kMet));
    const ContextSearch::Outcome outcome = search.End();
    ids = OwnedIds(search.ids());
    WEFT_MPI_TRY(std::move(met));
    if ((search.flags() & kMet) == 0)
      return Error(MPI_ERR_OTHER, "another process of the group could not take part");
    if (outcome == ContextSearch::Outcome::kExhausted) return NoContextsLeft();
    if (outcome == ContextSearch::Outcome::kAgreed) break;
  }
  Ref<Comm> comm = MakeIntra(parent, group, Self(parent));
  ids.GiveTo(*comm);
  *made = std::move(comm);
  return {};
}

// Of 30 bits, in the program's range: constructors that are under way at once between the same processes differ in the
// string that the program gives, others in who takes part.
class Tag {
 public:
  explicit Tag(std::string_view text) { Add(text); }
  void Add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001b3;  // FNV-1a
  }
  void Add(const Group& group) {
    for (const ProcessId process : group.members) Add(ThisJob().processes.NameOf(process));
  }
  void Add(const ProcessName& name) {
    Add({reinterpret_cast<const char*>(name.job.bytes.data()), name.job.bytes.size()});
    Add(std::to_string(name.rank));
  }
  int value() const { return static_cast<int>((hash_ ^ hash_ >> 32) & kLargestTag); }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// What a group talks over before it has a communicator.
Ref<Comm> Before(const Ref<Group>& local, const Ref<Group>& remote, bool inter, const Ref<ErrorHandler>& handler) {
  Ref<Comm> comm = MakeRef<Comm>();
  comm->local = local;
  comm->remote = remote;
  comm->inter = inter;
  comm->rank = local->RankOf(ThisJob().processes.self());
  comm->send_context = comm->receive_context = ContextPool::ContextOf(ContextPool::kGroups);
  comm->error_handler = handler;
  comm->HoldMembers();
  return comm;
}

}  // namespace

Error CreateGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made) {
  *made = nullptr;
  if (group->RankOf(Self(parent)) == MPI_UNDEFINED) return {};
  return MakeOfGroup(parent, group, tag, made);
}

Error CreateOfGroup(const Ref<Group>& group, std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made) {
  *made = nullptr;
  Tag tag(text);
  tag.Add(*group);
  const Ref<Comm> before = Before(group, group, /*inter=*/false, handler);
  return MakeOfGroup(*before, group, tag.value(), made);
}

Error CreateInterOfGroups(const Ref<Group>& local, int local_leader, const Group* remote, int remote_leader,
                          std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made,
                          const Error& refusal) {
  *made = nullptr;
  Ref<Comm> ours, peer;
  WEFT_MPI_TRY(CreateOfGroup(local, text, handler, &ours));
  ProcessTable& processes = ThisJob().processes;
  Tag tag(text);
  if (remote != nullptr && refusal.ok()) {
    const ProcessId other = remote->members[static_cast<size_t>(remote_leader)];
    ProcessName first = processes.own_name(), second = processes.NameOf(other);
    if (second < first) std::swap(first, second);
    tag.Add(first);
    tag.Add(second);
    peer = Before(MakeGroup({processes.self()}), MakeGroup({other}), /*inter=*/true, handler);
  }
  return CreateInter(*ours, local_leader, peer.get(), /*remote_leader=*/0, tag.value(), made, refusal);
}

}  // namespace weft::mpi
