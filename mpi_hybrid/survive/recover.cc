#include "mpi_hybrid/survive/recover.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/make_comm_agreement.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/survive/service.h"

namespace weft::mpi::survive {
namespace {

// In the first word, so that calls that do not match have no bit in common.
enum : uint64_t { kFlag = 1, kShrink = 2, kEnd = 4 };

Error Mismatch() {
  return Error(MPI_ERR_OTHER, "the calls of MPIX_Comm_agree and MPIX_Comm_shrink at the ranks of the communicator do not match");
}

// What is decided comes from others, who may have made another call, or take this process for dead (a network that was cut).
Error CheckDecision(const Ballot& decided, const std::vector<uint64_t>& put_in, const std::vector<ProcessId>& members) {
  const auto place = std::find(members.begin(), members.end(), ThisJob().processes.self()) - members.begin();
  if (!decided.voters.Has(static_cast<int>(place))) {
    return Error(MPIX_ERR_PROC_FAILED, "the other processes of the communicator consider this one dead, and have gone on without it");
  }
  return decided.IsOf(put_in) ? Error() : Mismatch();
}

// Bits by place among `members`, 64 to a word.
std::vector<uint64_t> AcknowledgedBits(const Comm& comm, const std::vector<ProcessId>& members) {
  RankSet known(static_cast<int>(members.size()));
  for (size_t place = 0; place < members.size(); ++place) {
    if (std::binary_search(comm.acknowledged.begin(), comm.acknowledged.end(), members[place])) known.Add(static_cast<int>(place));
  }
  return known.words();
}

// For MPIX_Comm_failure_ack.
void NoteDead(Comm& comm, const std::vector<ProcessId>& members, const RankSet& voters) {
  for (size_t place = 0; place < members.size(); ++place) {
    if (!voters.Has(static_cast<int>(place))) comm.found_dead.push_back(members[place]);
  }
  std::sort(comm.found_dead.begin(), comm.found_dead.end());
  comm.found_dead.erase(std::unique(comm.found_dead.begin(), comm.found_dead.end()), comm.found_dead.end());
}

Ref<Group> LivingOf(const Group& group, const std::vector<ProcessId>& members, const RankSet& voters) {
  std::vector<ProcessId> living;
  for (const ProcessId process : group.members) {
    const auto place = std::find(members.begin(), members.end(), process) - members.begin();
    if (voters.Has(static_cast<int>(place))) living.push_back(process);
  }
  return MakeGroup(std::move(living));
}

}  // namespace

Error AgreeOn(Comm& comm, int* flag) {
  const std::vector<ProcessId> members = Service::OrderedMembers(comm);
  std::vector<uint64_t> words = {kFlag, static_cast<uint32_t>(*flag)};
  const std::vector<uint64_t> known = AcknowledgedBits(comm, members);
  words.insert(words.end(), known.begin(), known.end());
  const Ballot agreed = Service::Get().Agree(comm, words);
  WEFT_MPI_TRY(CheckDecision(agreed, words, members));
  NoteDead(comm, members, agreed.voters);
  *flag = static_cast<int>(static_cast<uint32_t>(agreed.words[1]));
  for (size_t place = 0; place < members.size(); ++place) {
    const bool acknowledged = (agreed.words[2 + place / 64] >> place % 64 & 1) != 0;
    if (acknowledged || agreed.voters.Has(static_cast<int>(place))) continue;
    return Error(MPIX_ERR_PROC_FAILED, ThisJob().processes.Describe(members[place]) + " took no part, and not all others have acknowledged its death");
  }
  return {};
}

Error Shrink(Comm& comm, Ref<Comm>* made) {
  *made = nullptr;
  const std::vector<ProcessId> members = Service::OrderedMembers(comm);
  const uint64_t identity = comm.IdentityOfChild(uint64_t{1} << 32 | comm.next_agreement);
  ContextSearch search(TheContextPool(), identity, comm.inter ? 2 : 1);
  for (;;) {
    const std::span<uint64_t> proposal = search.Begin();
    std::vector<uint64_t> words = {kShrink};
    words.insert(words.end(), proposal.begin(), proposal.end());
    const Ballot agreed = Service::Get().Agree(comm, words);
    Error checked = CheckDecision(agreed, words, members);
    std::fill(proposal.begin(), proposal.end(), 0);
    if (checked.ok()) std::copy(agreed.words.begin() + 1, agreed.words.end(), proposal.begin());
    const ContextSearch::Outcome outcome = search.End();
    OwnedIds ids(search.ids(), identity);
    WEFT_MPI_TRY(std::move(checked));
    NoteDead(comm, members, agreed.voters);
    if (outcome == ContextSearch::Outcome::kAgain) continue;
    if (outcome == ContextSearch::Outcome::kExhausted) return NoContextsLeft();
    const ProcessId self = ThisJob().processes.self();
    const Ref<Group> local = LivingOf(*comm.local, members, agreed.voters);
    if (!comm.inter) {
      Ref<Comm> living = MakeIntra(comm, local, self);
      ids.GiveTo(*living);
      *made = std::move(living);
      return {};
    }
    const Ref<Group> remote = LivingOf(*comm.remote, members, agreed.voters);
    if (local->members.empty() || remote->members.empty()) return Error(MPIX_ERR_PROC_FAILED, "no process is left in the remote group");
    Ref<Comm> living = MakeInter(comm, local, remote, self);
    // Free at all of both groups.
    const ContextId context = ids.context(0);
    GiveContexts(*living, std::move(ids), context, identity);
    living->is_local_first = comm.is_local_first;
    *made = std::move(living);
    return {};
  }
}

void Revoke(Comm& comm) { Service::Get().Revoke(comm); }

void AbortOthers(Comm& comm, int status) { Service::Get().Abort(comm, status); }

void OnAborted(std::function<void(ProcessId by, int status)> end) { Service::Get().OnAborted(std::move(end)); }

void BeginToServe() { Service::Get().Begin(); }

void AwaitTheLiving(Comm& world) { (void)Service::Get().Agree(world, {kEnd}); }

}  // namespace weft::mpi::survive
