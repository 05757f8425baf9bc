#include "mpi_hybrid/comm/group.h"

#include <algorithm>
#include <utility>

#include "mpi_hybrid/core/job.h"

namespace weft::mpi {
namespace {

// Never destroyed: handles may be looked up while the program's static objects end.
HandleTable<Group>& Groups() {
  static auto& table = *new HandleTable<Group>(HandleKind::kGroup);
  return table;
}

Group& Empty() {
  static Group& empty = []() -> Group& {
    auto* group = new Group;
    group->AddRef();
    group->handle = MPI_GROUP_EMPTY;
    return *group;
  }();
  return empty;
}

template <typename Keep>
Ref<Group> Filter(const Group& group, Keep keep) {
  std::vector<ProcessId> members;
  for (ProcessId process : group.members) {
    if (keep(process)) members.push_back(process);
  }
  return MakeGroup(std::move(members));
}

}  // namespace

Group::~Group() {
  if (!names_) return;
  for (const ProcessId process : members) ThisJob().processes.Name(process, -1);
}

int Group::RankOf(ProcessId process) const {
  if (process < 0) return MPI_UNDEFINED;
  const auto at = static_cast<size_t>(process);
  if (at < members.size() && members[at] == process) return process;  // MPI_COMM_WORLD and leading parts of it
  if (ranks_.empty()) {
    if (members.empty()) return MPI_UNDEFINED;
    ranks_.assign(static_cast<size_t>(*std::max_element(members.begin(), members.end())) + 1, MPI_UNDEFINED);
    for (size_t rank = 0; rank < members.size(); ++rank)
      ranks_[static_cast<size_t>(members[rank])] = static_cast<int>(rank);
  }
  return at < ranks_.size() ? ranks_[at] : MPI_UNDEFINED;
}

Group* Group::Find(MPI_Group handle) { return handle == MPI_GROUP_EMPTY ? &Empty() : Groups().Find(handle); }

MPI_Group Group::Give(const Ref<Group>& group) {
  if (group->members.empty()) return MPI_GROUP_EMPTY;
  Ref<Group> given = group->handle == MPI_GROUP_NULL ? group : MakeGroup(group->members);
  given->handle = Groups().Add(given.get());
  given->AddRef();
  return given->handle;
}

void Group::TakeBack(Group& group) {
  if (group.handle == MPI_GROUP_EMPTY) return;
  Groups().Remove(group.handle);
  group.handle = MPI_GROUP_NULL;
  group.Release();
}

Ref<Group> MakeGroup(std::vector<ProcessId> members) {
  if (members.empty()) return Ref<Group>(&Empty());
  Ref<Group> group = MakeRef<Group>();
  group->members = std::move(members);
  group->names_ = true;
  for (const ProcessId process : group->members) ThisJob().processes.Name(process, 1);
  return group;
}

Ref<Group> Union(const Group& a, const Group& b) {
  std::vector<ProcessId> members = a.members;
  for (ProcessId process : b.members) {
    if (a.RankOf(process) == MPI_UNDEFINED) members.push_back(process);
  }
  return MakeGroup(std::move(members));
}

Ref<Group> Intersection(const Group& a, const Group& b) {
  return Filter(a, [&](ProcessId process) { return b.RankOf(process) != MPI_UNDEFINED; });
}

Ref<Group> Difference(const Group& a, const Group& b) {
  return Filter(a, [&](ProcessId process) { return b.RankOf(process) == MPI_UNDEFINED; });
}

Ref<Group> Include(const Group& group, const std::vector<int>& ranks) {
  std::vector<ProcessId> members;
  members.reserve(ranks.size());
  for (int rank : ranks) members.push_back(group.members[static_cast<size_t>(rank)]);
  return MakeGroup(std::move(members));
}

Ref<Group> Exclude(const Group& group, const std::vector<int>& ranks) {
  std::vector<bool> out(group.members.size());
  for (int rank : ranks) out[static_cast<size_t>(rank)] = true;
  std::vector<ProcessId> members;
  for (size_t rank = 0; rank < out.size(); ++rank) {
    if (!out[rank]) members.push_back(group.members[rank]);
  }
  return MakeGroup(std::move(members));
}

int Compare(const Group& a, const Group& b) {
  if (a.members == b.members) return MPI_IDENT;
  if (a.members.size() != b.members.size()) return MPI_UNEQUAL;
  const bool similar = std::all_of(a.members.begin(), a.members.end(),
                                   [&](ProcessId process) { return b.RankOf(process) != MPI_UNDEFINED; });
  return similar ? MPI_SIMILAR : MPI_UNEQUAL;
}

}  // namespace weft::mpi
