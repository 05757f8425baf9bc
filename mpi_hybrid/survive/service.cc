#include "mpi_hybrid/survive/service.h"

#include <algorithm>

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/survive/consensus.h"

namespace weft::mpi::survive {
namespace {

constexpr size_t kMostEnded = 4096;       // agreements that are kept for others after their end, on communicators without a later one
constexpr size_t kMostEarly = 4096;       // agreements to which others have come before this process
constexpr size_t kMostRevokedEarly = 1024, kMostAborts = 64;

Engine& TheEngine() { return *ProcessEngine(); }

bool IsGone(ProcessId process) {
  const Link* const link = process == TheEngine().self() ? nullptr : TheEngine().FindLink(process);
  return link != nullptr && link->is_gone();
}

void SendRevocation(uint64_t identity, ProcessId process) {
  const Note note{.what = Note::What::kRevoke, .identity = identity, .number = 0, .message = {}};
  TheEngine().SendNote(process, note.Serialize());
}

}  // namespace

// One agreement, under way or kept for those who have not heard of its end.
class Service::Agreement final : Consensus::Outbox {
 public:
  Agreement(const Key& key, std::vector<ProcessId> members)
      : key_(key), members_(std::move(members)), group_(MakeGroup(members_)), consensus_(Self(), static_cast<int>(members_.size()), *this) {}

  const std::vector<ProcessId>& members() const { return members_; }
  Consensus& consensus() { return consensus_; }

  void TakeNote(ProcessId from, ParsedNote note) {
    const int rank = group_->RankOf(from);
    if (rank == MPI_UNDEFINED || from == TheEngine().self() || !note.SetVoters(static_cast<int>(members_.size()))) return;
    consensus_.OnMessage(rank, note.note.message);
  }
  void LookForDeaths() {
    if (consensus_.decision()) return;
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      if (IsGone(members_[rank])) consensus_.OnDead(static_cast<int>(rank));
    }
  }
  std::vector<ProcessId> Awaited() const {
    std::vector<ProcessId> awaited;
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      if (consensus_.Awaits(static_cast<int>(rank))) awaited.push_back(members_[rank]);
    }
    return awaited;
  }

 private:
  int Self() const { return group_->RankOf(TheEngine().self()); }

  void Send(int rank, const Message& message) override {
    const Note note{.what = Note::What::kAgreement, .identity = key_.first, .number = key_.second, .message = message};
    TheEngine().SendNote(members_[static_cast<size_t>(rank)], note.Serialize());
  }

  const Key key_;
  const std::vector<ProcessId> members_;
  const Ref<Group> group_;  // keeps their numbers
  Consensus consensus_;
};

Service& Service::Get() {
  static auto& service = *new Service;  // outlives the program's exit handlers
  return service;
}

// While nobody says anything there is nothing to poll.
void Service::Begin() {
  TheEngine().set_on_note([this] {
    if (!std::exchange(registered_, true)) Progress::AddStage(this);
  });
}

std::vector<ProcessId> Service::OrderedMembers(const Comm& comm) {
  std::vector<ProcessId> members = comm.local->members;
  if (!comm.inter) return members;
  std::vector<ProcessId> others = comm.remote->members;
  if (!comm.is_local_first) std::swap(members, others);
  members.insert(members.end(), others.begin(), others.end());
  return members;
}

// --- agreements ---

Service::Agreement* Service::Find(const Key& key) const {
  const auto found = agreements_.find(key);
  return found == agreements_.end() ? nullptr : found->second.get();
}

Ballot Service::Agree(Comm& comm, const std::vector<uint64_t>& words) {
  if (!std::exchange(registered_, true)) Progress::AddStage(this);
  const Key key(comm.identity(), comm.next_agreement++);
  agreements_[key] = std::make_unique<Agreement>(key, OrderedMembers(comm));
  Agreement& agreement = *agreements_[key];
  agreement.LookForDeaths();
  if (auto early = early_.extract(key); !early.empty()) {
    for (auto& [from, note] : early.mapped()) agreement.TakeNote(from, std::move(note));
  }
  agreement.consensus().Vote(words);
  Await(agreement, comm);
  const Ballot decided = *agreement.consensus().decision();
  NoteEnd(key);
  return decided;
}

// Deaths of those who are waited for are to be noticed, whether there is a connection with them or not.
void Service::Await(Agreement& agreement, Comm& comm) {
  const auto decided = [&] { return agreement.consensus().decision().has_value(); };
  ProcessDevice()->Flush();
  while (!decided()) {
    const std::vector<ProcessId> awaited = agreement.Awaited();
    std::vector<std::unique_ptr<AwaitedProbe>> watched;
    for (const ProcessId process : awaited) {
      watched.push_back(std::make_unique<AwaitedProbe>(AwaitedProbe{process, comm}));
      TheEngine().StartAwaiting(*watched.back());
    }
    const auto is_awaited = [&](ProcessId process) {
      return std::find(awaited.begin(), awaited.end(), process) != awaited.end();
    };
    Progress::WaitUntil([&] {
      if (decided()) return true;
      const std::vector<ProcessId> now = agreement.Awaited();
      return !std::all_of(now.begin(), now.end(), is_awaited);
    });
    for (const auto& probe : watched) TheEngine().StopAwaiting(*probe);
  }
}

// All have ended those before it on the same communicator, since all the living have put in something here.
void Service::NoteEnd(const Key& key) {
  auto at = agreements_.lower_bound({key.first, 0});
  while (at != agreements_.end() && at->first < key) at = agreements_.erase(at);
  ended_.push_back(key);
  if (ended_.size() <= kMostEnded) return;
  agreements_.erase(ended_.front());
  ended_.pop_front();
}

void Service::TakeAgreement(ProcessId from, ParsedNote note) {
  const Key key(note.note.identity, note.note.number);
  if (Agreement* agreement = Find(key)) return agreement->TakeNote(from, std::move(note));
  const Comm* const comm = Comm::FindByIdentity(key.first);
  if (comm != nullptr && key.second < comm->next_agreement) return;  // over everywhere
  if (!early_.contains(key)) early_order_.push_back(key);
  early_[key][from] = std::move(note);
  if (early_order_.size() <= kMostEarly) return;
  early_.erase(early_order_.front());
  early_order_.pop_front();
}

// --- revocations ---

void Service::Revoke(Comm& comm) {
  if (comm.revoked) return;
  if (!std::exchange(registered_, true)) Progress::AddStage(this);
  TheEngine().Revoke(comm);
  if (comm.identity() == 0) return;  // MPI_COMM_SELF
  const std::vector<ProcessId> members = OrderedMembers(comm);
  const auto self = std::find(members.begin(), members.end(), TheEngine().self());
  revocations_.Add(comm.identity(), static_cast<int>(self - members.begin()), members);
  revocations_.Spread(IsGone, SendRevocation);
  ProcessDevice()->Flush();
}

// --- aborts ---

void Service::Abort(Comm& comm, int status) {
  for (const ProcessId process : comm.local->members) {
    if (process == TheEngine().self() || IsGone(process)) continue;
    const Note note{.what = Note::What::kAbort, .identity = comm.identity(), .number = static_cast<uint32_t>(status), .message = {}};
    TheEngine().SendNote(process, note.Serialize());
  }
  ProcessDevice()->Flush();
  const std::vector<ProcessId>& members = comm.local->members;
  Progress::WaitUntil(
      [&] { return std::all_of(members.begin(), members.end(), [](ProcessId process) { return process == TheEngine().self() || IsGone(process); }); },
      std::chrono::steady_clock::now() + kAbortPatience);
}

// Only a member of a communicator ends its members.
bool Service::EndIfAborted() {
  const auto ends = [&](const std::pair<ProcessId, Note>& abort) {
    const Comm* const comm = Comm::FindByIdentity(abort.second.identity);
    if (comm == nullptr) return false;
    if (comm->local->RankOf(abort.first) != MPI_UNDEFINED && end_) end_(abort.first, static_cast<int>(abort.second.number & 0xff));
    return true;
  };
  return std::erase_if(aborts_, ends) > 0;
}

bool Service::RevokeWhatIsThereNow() {
  bool moved = false;
  for (size_t i = 0; i < revoked_early_.size();) {
    Comm* const comm = Comm::FindByIdentity(revoked_early_[i]);
    if (comm == nullptr) {
      ++i;
      continue;
    }
    revoked_early_.erase(revoked_early_.begin() + static_cast<std::ptrdiff_t>(i));
    Revoke(*comm);
    moved = true;
  }
  return moved;
}

// --- progress ---

void Service::Take(ProcessId from, ParsedNote note) {
  if (note.note.what == Note::What::kAgreement) return TakeAgreement(from, std::move(note));
  if (note.note.what == Note::What::kAbort) {
    aborts_.emplace_back(from, std::move(note.note));
    if (aborts_.size() > kMostAborts) aborts_.pop_front();
    return;
  }
  const uint64_t identity = note.note.identity;
  if (revocations_.Has(identity)) return;
  if (std::find(revoked_early_.begin(), revoked_early_.end(), identity) != revoked_early_.end()) return;
  revoked_early_.push_back(identity);
  if (revoked_early_.size() > kMostRevokedEarly) revoked_early_.pop_front();
}

bool Service::LookForDeaths() {
  if (gone_ == TheEngine().gone()) return false;
  gone_ = TheEngine().gone();
  for (const auto& [key, agreement] : agreements_) agreement->LookForDeaths();
  revocations_.Spread(IsGone, SendRevocation);
  return true;
}

bool Service::Poll() {
  if (ProcessDevice() == nullptr) return false;
  bool moved = false;
  // What somebody said counts before the news of its death.
  for (Engine::Note& note : TheEngine().TakeNotes()) {
    moved = true;
    if (auto parsed = ParseNote(note.bytes)) Take(note.from, *std::move(parsed));
  }
  moved |= LookForDeaths();
  moved |= RevokeWhatIsThereNow();
  moved |= EndIfAborted();
  if (moved) {
    ProcessDevice()->Flush();
    Progress::Wake();  // whoever sleeps until something of this is so
  }
  return moved;
}

bool Service::Arm() { return !TheEngine().has_notes() && gone_ == TheEngine().gone(); }

}  // namespace weft::mpi::survive
