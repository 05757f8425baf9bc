#include "mpi_hybrid/coll/host_group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/address_space_mark.h"
#include "base/settings.h"
#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/schedule_request.h"
#include "mpi_hybrid/core/counters.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/host/own_words.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

constexpr std::chrono::microseconds kSpin{50};  // with a processor for each rank, if each has its own
constexpr uint64_t kNoOffset = ~uint64_t{0};

template <typename Build>
Error ByMessages(Comm& comm, Build build) {
  ScheduleRequest* request = ScheduleRequest::Make(comm);
  build(request->schedule, Place{comm.rank, comm.size()});
  Error error = request->RunToEnd();
  request->Release();
  return error;
}

}  // namespace

Error HostGroup::For(Comm& comm, HostGroup** group) {
  *group = nullptr;
  if (comm.inter || comm.size() < 2) return {};
  if (comm.revoked) [[unlikely]] return Engine::RevokedError();
  if (comm.collectives == nullptr) [[unlikely]] {
    if (host::ThisHost() == nullptr || !host::ThisHost()->has_company()) return {};
    std::unique_ptr<HostGroup> made;
    Error failed = Make(comm, &made);
    made->failed_ = std::move(failed);
    comm.collectives = std::move(made);
  }
  auto& there = static_cast<HostGroup&>(*comm.collectives);
  if (!there.failed_.ok()) [[unlikely]]
    return Error(there.failed_.mpi_class(), there.failed_.message());
  if (there.member_ != nullptr) *group = &there;
  return {};
}

// All ranks are in the segment, or each knows that not all are.
Error HostGroup::Make(Comm& comm, std::unique_ptr<HostGroup>* made) {
  host::Segment& segment = *host::ThisHost();
  std::vector<int> places;
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (const std::optional<int> place = segment.PlaceOf(comm.peer(rank))) places.push_back(*place);
  }
  made->reset(new HostGroup(comm, segment, std::move(places)));
  HostGroup& group = **made;
  if (group.places_.size() != static_cast<size_t>(comm.size())) return {};
  const size_t bytes = coll::Memory::Bytes(comm.size());
  uint64_t offset = comm.rank == 0 ? segment.Reserve(bytes).value_or(kNoOffset) : kNoOffset;
  Error error = ByMessages(comm, [&](Schedule& schedule, Place place) {
    BuildBroadcast(schedule, place, Algorithm::kBinomial, &offset, sizeof offset, *Datatype::Find(MPI_BYTE), 0);
  });
  enum : int { kFailed = -1, kNoMemory = 0, kMapped = 1 };
  if (error.ok() && offset != kNoOffset) group.mapping_ = segment.Map(offset, bytes);
  if (group.mapping_) {
    coll::MemberLines& lines = group.memory().lines(comm.rank);
    lines.cookie_address = reinterpret_cast<uintptr_t>(group.cookie_.data());
    std::memcpy(lines.cookie, group.cookie_.data(), sizeof lines.cookie);
    lines.mark = AddressSpaceMark();
  }
  int mine = !error.ok() ? kFailed : group.mapping_ ? kMapped : kNoMemory, all = 0;
  const Reduction reduction{&mine, &all, 1, Datatype::Find(MPI_INT), Op::Find(MPI_MIN)};
  Error agreed = ByMessages(comm, [&](Schedule& schedule, Place place) {
    BuildAllReduce(schedule, place, Algorithm::kDoubling, reduction);
  });
  if (error.ok()) error = std::move(agreed);
  if (group.mapping_ && (!error.ok() || all == kMapped)) {
    group.offset_ = offset;
    group.member_ = std::make_unique<coll::Member>(group.memory(), comm.rank, comm.size(), group, group,
                                                   /*spins=*/SpinTime().count() != 0);
  }
  if (!error.ok() && group.member_ != nullptr) group.NoteWhoIsGone();  // others may be in it already
  // What others wrote into it they did before they agreed. Nobody else will give it back.
  if (error.ok() && all != kMapped && comm.rank == 0 && offset != kNoOffset) segment.Discard(offset, bytes);
  if (error.ok() && all == kFailed) return Error(MPIX_ERR_PROC_FAILED, "a rank of the communicator is gone");
  return error;
}

void HostGroup::NoteWhoIsGone() {
  int gone = member_->me();
  for (int i = 0; i < member_->members(); ++i) {
    if (!segment_.IsPresent(places_[static_cast<size_t>(i)])) gone = i;
  }
  member_->NoteGone(gone);
}

// The last one gives the memory back; others may still read what this one wrote. Who died has left, too. Of two that are last each may see that all
// have left: what is given back twice was so the first time.
HostGroup::~HostGroup() {
  if (member_ == nullptr) return;
  static_assert(host::kMostPlaces <= coll::kMostMembers);
  coll::Head& head = memory().head();
  head.left[member_->me()] = 1;
  for (int i = 0; i < member_->members(); ++i) {
    if (head.left[i] == 0 && segment_.IsPresent(places_[static_cast<size_t>(i)])) return;
  }
  segment_.Discard(offset_, mapping_.size());
}

bool HostGroup::ReachesAll() {
  if (ProcessSettings().SharesMemory() != SameHost::kAuto) return false;
  processes_.resize(places_.size());
  for (int rank = 0; rank < member_->members(); ++rank) {
    if (rank == member_->me()) continue;
    const coll::MemberLines& lines = memory().lines(rank);
    uint8_t cookie[sizeof lines.cookie];
    std::memcpy(cookie, lines.cookie, sizeof cookie);
    const pid_t pid = segment_.PidOf(places_[static_cast<size_t>(rank)]);
    auto& memory = processes_[static_cast<size_t>(rank)];
    memory = host::ProcessMemory::Of({.pid = pid, .mark = lines.mark, .cookie_address = lines.cookie_address, .cookie = cookie},
                                     host::ProcessMemory::Access::kRead);
    if (memory == nullptr) return false;
  }
  return true;
}

coll::Reach::Outcome HostGroup::Read(int member, uint64_t address, void* to, size_t bytes) {
  host::ProcessMemory& memory = *processes_[static_cast<size_t>(member)];
  ++g_counters.host_copies;
  if (memory.Read(address, to, bytes) == 0) return Outcome::kRead;
  return segment_.PidOf(places_[static_cast<size_t>(member)]) == memory.pid() ? Outcome::kRefused : Outcome::kGone;
}

std::string HostGroup::Overwritten() const {
  return member_ == nullptr || member_->HasItsWords() ? std::string() : "a counter of this rank in the collectives of a communicator";
}

bool HostGroup::IsOver() const { return (*missing_)() < 0 || !member_->Gone().ok() || comm_.revoked; }

bool HostGroup::Arm() {
  coll::MemberLines& lines = memory().lines(member_->me());
  coll::Head& head = memory().head();
  if (lines.sleeps_for.load(std::memory_order_relaxed) == 0) head.sleepers.fetch_add(1, std::memory_order_relaxed);  // in front of the fence below
  for (int awaited = (*missing_)(); awaited >= 0;) {
    lines.sleeps_for.store(static_cast<uint32_t>(awaited) + 1, std::memory_order_relaxed);
    // Pairs with the fence in Member::Wake: the words are loaded with acquire, which would pass the store on a weakly ordered processor.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const int still = (*missing_)();
    if (still == awaited && member_->Gone().ok() && !comm_.revoked) return true;
    if (!member_->Gone().ok() || comm_.revoked) break;
    awaited = still;
  }
  lines.sleeps_for.store(static_cast<uint32_t>(member_->me()) + 1, std::memory_order_relaxed);  // nobody's
  return false;
}

void HostGroup::Disarm() {
  coll::MemberLines& lines = memory().lines(member_->me());
  if (lines.sleeps_for.load(std::memory_order_relaxed) == 0) return;
  lines.sleeps_for.store(0, std::memory_order_relaxed);  // a ring that comes late is silenced
  memory().head().sleepers.fetch_sub(1, std::memory_order_relaxed);
}

Error HostGroup::Until(coll::Missing missing) {
  if (Spin([&] { return missing() < 0; }, kSpin)) return {};
  missing_ = &missing;
  Error error;
  {
    const HostWait::Scope asleep(*this);
    error = Sleep(missing);
  }
  missing_ = nullptr;
  return error;
}

Error HostGroup::Sleep(coll::Missing missing) {
  Error error;
  auto start = Progress::Start::kPolling;
  for (auto slice = kFirstSlice; error.ok(); slice = std::min(slice * 2, kLongestSlice)) {
    Progress::WaitUntil([this] { return IsOver(); }, std::chrono::steady_clock::now() + slice, start);
    start = Progress::Start::kSleeping;
    const int awaited = missing();
    if (awaited < 0) break;
    // A rank that found its own words overwritten is there, and is lost to the others of its host.
    const bool present = segment_.IsPresent(places_[static_cast<size_t>(awaited)]) && !IsDead(comm_.peer(awaited));
    const bool passed = member_->HasPassed(awaited);
    Error gone = member_->Gone();
    // What it did before is there by now.
    if (missing() != awaited) continue;
    if (comm_.revoked) {
      error = Engine::RevokedError();
    } else if (!gone.ok()) {
      error = std::move(gone);
    } else if (!present) {
      member_->NoteGone(awaited);
      error = member_->Gone();
    } else if (std::string overwritten = slice == kLongestSlice ? host::OwnWords::FindOverwritten() : std::string(); !overwritten.empty()) {
      error = Error(MPI_ERR_OTHER, std::move(overwritten));
    } else if (passed) {
      error = Error(MPI_ERR_TRUNCATE, "rank " + std::to_string(awaited) +
                                          " is in a later collective: the calls at the two ranks do not match");
    }
  }
  return error;
}

}  // namespace weft::mpi
