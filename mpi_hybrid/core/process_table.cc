#include "mpi_hybrid/core/process_table.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/hex.h"

namespace weft::mpi {
namespace {

constexpr size_t kShortId = 4;  // bytes of a job's id in messages

}  // namespace

std::string ProcessName::ToString() const {
  return "rank " + std::to_string(rank) + " of job " + HexOf(std::span(job.bytes).first(kShortId));
}

Bond Bond::Of(const JobSecret& secret) { return {.id = {secret.Id()}, .secret = secret}; }

void ProcessTable::Start(const JobSecret& secret, int rank, int size) {
  std::lock_guard lock(mutex_);
  self_ = rank;
  world_size_ = size;
  job_ = Bond::Of(secret);
}

int ProcessTable::limit() const {
  std::lock_guard lock(mutex_);
  return world_size_ + static_cast<int>(entries_.size());
}

ProcessName ProcessTable::NameOf(ProcessId process) const {
  std::lock_guard lock(mutex_);
  if (IsOfWorld(process)) return {.job = job_ ? job_->id : JobId{}, .rank = process};
  return At(process).name;
}

std::string ProcessTable::Describe(ProcessId process) const {
  if (describe_) {
    if (std::string text = describe_(process); !text.empty()) return text;
  }
  if (IsOfWorld(process)) return "rank " + std::to_string(process) + " of MPI_COMM_WORLD";
  return NameOf(process).ToString();
}

std::optional<ProcessId> ProcessTable::FindLocked(const ProcessName& name) const {
  if (job_ && name.job == job_->id) {
    if (!IsOfWorld(name.rank)) return std::nullopt;
    return name.rank;
  }
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<ProcessId> ProcessTable::Find(const ProcessName& name) const {
  std::lock_guard lock(mutex_);
  return FindLocked(name);
}

Bond ProcessTable::BondOf(ProcessId process) const {
  std::lock_guard lock(mutex_);
  return IsOfWorld(process) ? *job_ : At(process).bonds.front();
}

std::vector<Bond> ProcessTable::BondsOf(ProcessId process) const {
  std::lock_guard lock(mutex_);
  return IsOfWorld(process) ? std::vector<Bond>{*job_} : At(process).bonds;
}

void ProcessTable::AddBond(ProcessId process, const Bond& bond) {
  std::lock_guard lock(mutex_);
  if (!IsOfWorld(process)) AddBond(At(process), bond);
}

const Bond* ProcessTable::FindBond(const Entry& entry, const JobId& id) {
  const auto found = std::find_if(entry.bonds.begin(), entry.bonds.end(), [&](const Bond& bond) { return bond.id == id; });
  return found == entry.bonds.end() ? nullptr : &*found;
}

void ProcessTable::AddBond(Entry& entry, const Bond& bond) {
  if (FindBond(entry, bond.id) != nullptr) return;
  if (entry.bonds.size() == kMostBonds) entry.bonds.erase(entry.bonds.begin() + 1);
  entry.bonds.push_back(bond);
}

ProcessId ProcessTable::AddLocked(const ProcessName& name, const Bond& bond, Cards cards) {
  WEFT_CHECK(!FindLocked(name));
  ProcessId process;
  if (free_.empty()) {
    process = world_size_ + static_cast<int>(entries_.size());
    entries_.push_back({.name = name, .bonds = {bond}, .cards = {}});
  } else {
    process = free_.back();
    free_.pop_back();
  }
  At(process) = {.name = name, .bonds = {bond}, .cards = std::move(cards), .in_use = true, .parted = false};
  by_name_.emplace(name, process);
  if (dead_.contains(name)) NoteDied(process);
  return process;
}

ProcessId ProcessTable::Add(const ProcessName& name, const Bond& bond, Cards cards) {
  std::lock_guard lock(mutex_);
  return AddLocked(name, bond, std::move(cards));
}

void ProcessTable::SetCards(ProcessId process, Cards cards) {
  std::lock_guard lock(mutex_);
  if (!IsOfWorld(process)) At(process).cards = std::move(cards);
}

Cards ProcessTable::CardsOf(ProcessId process) const {
  std::lock_guard lock(mutex_);
  return IsOfWorld(process) ? Cards{} : At(process).cards;
}

void ProcessTable::ForgetName(ProcessId process) {
  const auto found = by_name_.find(At(process).name);
  if (found != by_name_.end() && found->second == process) by_name_.erase(found);
}

void ProcessTable::FreeIfUnused(ProcessId process) {
  Entry& entry = At(process);
  if (!entry.in_use || !entry.parted || entry.groups != 0 || entry.communicators != 0) return;
  entry = {.name = entry.name, .bonds = {entry.bonds.front()}, .cards = {}};
  std::erase(died_, process);
  free_.push_back(process);
}

void ProcessTable::Name(ProcessId process, int groups) {
  if (IsOfWorld(process)) return;
  std::lock_guard lock(mutex_);
  Entry& entry = At(process);
  entry.groups += groups;
  if (entry.groups == 0 && entry.communicators == 0 && !entry.parting) Part(process);
  FreeIfUnused(process);
}

void ProcessTable::Hold(ProcessId process, int communicators) {
  if (IsOfWorld(process)) return;
  std::lock_guard lock(mutex_);
  Entry& entry = At(process);
  entry.communicators += communicators;
  if (entry.communicators == 0 && communicators < 0) Part(process);
}

int ProcessTable::HoldsOf(const std::vector<JobId>& jobs) const {
  std::lock_guard lock(mutex_);
  int holds = 0;
  for (const Entry& entry : entries_) {
    if (entry.in_use && std::find(jobs.begin(), jobs.end(), entry.name.job) != jobs.end()) holds += entry.communicators;
  }
  return holds;
}

void ProcessTable::Part(ProcessId process) {
  if (std::exchange(At(process).parting, true)) return;
  ForgetName(process);
  parting_.push_back(process);
}

std::vector<ProcessId> ProcessTable::TakeParting() {
  std::lock_guard lock(mutex_);
  return std::exchange(parting_, {});
}

bool ProcessTable::has_parting() const {
  std::lock_guard lock(mutex_);
  return !parting_.empty();
}

void ProcessTable::Parted(ProcessId process) {
  std::lock_guard lock(mutex_);
  WEFT_CHECK(At(process).parting);
  At(process).parted = true;
  FreeIfUnused(process);
}

void ProcessTable::Left(ProcessId process) {
  if (IsOfWorld(process)) return;
  std::lock_guard lock(mutex_);
  ForgetName(process);
  if (At(process).communicators == 0) Part(process);
}

void ProcessTable::Died(const ProcessName& name) {
  std::lock_guard lock(mutex_);
  if (!dead_.insert(name).second) return;
  dead_in_order_.push_back(name);
  if (dead_in_order_.size() > kMostDead) {
    dead_.erase(dead_in_order_.front());
    dead_in_order_.pop_front();
  }
  if (const auto known = FindLocked(name); known && !IsOfWorld(*known)) NoteDied(*known);
}

void ProcessTable::NoteDied(ProcessId process) {
  died_.push_back(process);
  has_died_ = true;
}

std::vector<ProcessId> ProcessTable::TakeDied() {
  std::lock_guard lock(mutex_);
  has_died_ = false;
  return std::exchange(died_, {});
}

void ProcessTable::OpenDoor(const Bond& bond) {
  std::lock_guard lock(mutex_);
  doors_.emplace(bond.id, bond);
}

void ProcessTable::CloseDoor(const JobId& bond) {
  std::lock_guard lock(mutex_);
  closed_doors_.push_back(bond);
  if (closed_doors_.size() <= kMostClosed) return;
  doors_.erase(closed_doors_.front());
  closed_doors_.pop_front();
}

std::optional<Bond> ProcessTable::BondToEnter(const JobId& bond, const ProcessName& name) const {
  std::lock_guard lock(mutex_);
  const auto known = FindLocked(name);
  if (known && IsOfWorld(*known)) return job_->id == bond ? job_ : std::nullopt;
  const Bond* common = known ? FindBond(At(*known), bond) : nullptr;
  if (common != nullptr) return *common;
  const auto door = doors_.find(bond);
  if (door == doors_.end() || name.rank < 0 || name.job == job_->id) return std::nullopt;
  return door->second;
}

ProcessId ProcessTable::Enter(const Bond& bond, const ProcessName& name) {
  std::lock_guard lock(mutex_);
  const auto known = FindLocked(name);
  if (!known) return AddLocked(name, bond, {});
  if (!IsOfWorld(*known)) AddBond(At(*known), bond);
  return *known;
}

}  // namespace weft::mpi
