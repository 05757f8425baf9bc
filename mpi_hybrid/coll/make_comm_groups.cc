#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/job_secret.h"
#include "mpi_hybrid/coll/group_tree.h"
#include "mpi_hybrid/coll/inter_end.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/coll/tags.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/foreign.h"
#include "mpi_hybrid/p2p/message.h"

// Constructors of communicators that only the processes of a group take part in.
namespace weft::mpi {
namespace {

ProcessId OwnProcess(const Comm& comm) { return comm.local->members[static_cast<size_t>(comm.rank)]; }

uint64_t SeedOf(const Comm& parent, int tag) { return uint64_t{parent.receive_context} << 32 | static_cast<uint32_t>(tag); }

Error MakeOfGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made) {
  GroupTree tree(parent, *group, tags::OfProgram(tag));
  OwnedIds ids;
  WEFT_MPI_TRY(AgreeInTree(tree, SeedOf(parent, tags::OfProgram(tag)), 1, /*willing=*/true, &ids));
  Ref<Comm> comm = MakeIntra(parent, group, OwnProcess(parent));
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

// IMPI makes communicators from communicators only.
Error CheckGroup(const Group& group) {
  if (!AnyForeign(group.members)) return {};
  return Error(MPI_ERR_UNSUPPORTED_OPERATION, "the group has processes of several clients of an IMPI job, which can make a communicator only from one that all "
                                              "processes of it have (MPI_Comm_create, MPI_Comm_split)");
}

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

Error AgreeInTree(GroupTree& tree, uint64_t seed, size_t count, bool willing, OwnedIds* agreed) {
  constexpr uint64_t kMet = 2;
  ContextSearch search(TheContextPool(), seed, count);
  for (;;) {
    // The identity is the root's to choose: the same group may do this with the same tag again.
    const std::span<uint64_t> proposal = search.Begin(willing ? kMet : 0);
    std::vector<uint64_t> words(proposal.begin(), proposal.end());
    words.push_back(~uint64_t{0});
    Error met = tree.And(words, [](std::span<uint64_t> at_root) -> Error {
      const Nonce nonce = NewNonce();
      std::memcpy(&at_root.back(), nonce.data(), sizeof(uint64_t));
      return {};
    });
    std::copy_n(words.begin(), proposal.size(), proposal.begin());
    const ContextSearch::Outcome outcome = search.End();
    OwnedIds ids(search.ids(), words.back());
    WEFT_MPI_TRY(std::move(met));
    if ((search.flags() & kMet) == 0)
      return Error(MPI_ERR_OTHER, "another process of the group could not take part");
    if (outcome == ContextSearch::Outcome::kExhausted) return NoContextsLeft();
    if (outcome == ContextSearch::Outcome::kAgreed) {
      *agreed = std::move(ids);
      return {};
    }
  }
}

Error CreateGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made) {
  *made = nullptr;
  if (group->RankOf(OwnProcess(parent)) == MPI_UNDEFINED) return {};
  WEFT_MPI_TRY(CheckGroup(*group));
  return MakeOfGroup(parent, group, tag, made);
}

Error CreateOfGroup(const Ref<Group>& group, std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made) {
  *made = nullptr;
  WEFT_MPI_TRY(CheckGroup(*group));
  Tag tag(text);
  tag.Add(*group);
  const Ref<Comm> before = Before(group, group, /*inter=*/false, handler);
  return MakeOfGroup(*before, group, tag.value(), made);
}

Error CreateInterOfGroups(const Ref<Group>& local, int local_leader, const Group* remote, int remote_leader,
                          std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made,
                          const Error& refusal) {
  *made = nullptr;
  WEFT_MPI_TRY(CheckGroup(*local));
  if (remote != nullptr) WEFT_MPI_TRY(CheckGroup(*remote));
  ProcessTable& processes = ThisJob().processes;
  Tag within(text), between(text);
  within.Add(*local);
  const int tag = tags::OfProgram(within.value());
  const Ref<Comm> before = Before(local, local, /*inter=*/false, handler);
  Ref<Comm> peer;
  if (remote != nullptr && refusal.ok()) {
    const ProcessId other = remote->members[static_cast<size_t>(remote_leader)];
    ProcessName first = processes.own_name(), second = processes.NameOf(other);
    if (second < first) std::swap(first, second);
    between.Add(first);
    between.Add(second);
    peer = Before(MakeGroup({processes.self()}), MakeGroup({other}), /*inter=*/true, handler);
  }
  GroupTree tree(*before, *local, tag, local_leader);
  InterEnd end(*before, local_leader, peer.get(), /*remote_leader=*/0, tags::OfProgram(between.value()),
               [&](void* data, size_t bytes) { return tree.Tell(data, bytes); });
  return MakeInterAt(end, *before, refusal, made, [&](bool willing, OwnedIds* ids) { return AgreeInTree(tree, SeedOf(*before, tag), 2, willing, ids); });
}

}  // namespace weft::mpi
