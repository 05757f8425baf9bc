#include "pmi/launch/binding.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace weft::pmi {
namespace {

using Kind = BindingRequest::Kind;
using Group = BindingRequest::Group;

CpuSet NewSet() {
  CpuSet set(hwloc_bitmap_alloc());
  WEFT_CHECK(set != nullptr);
  return set;
}

CpuSet Copy(hwloc_const_bitmap_t set) {
  CpuSet copy(hwloc_bitmap_dup(set));
  WEFT_CHECK(copy != nullptr);
  return copy;
}

std::string ToText(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, set) < 0) return {};
  std::string copy = text;
  free(text);
  return copy;
}

hwloc_obj_type_t TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kMachine:
      return HWLOC_OBJ_MACHINE;
    case Kind::kNuma:
      return HWLOC_OBJ_NUMANODE;
    case Kind::kSocket:
      return HWLOC_OBJ_PACKAGE;
    case Kind::kCore:
      return HWLOC_OBJ_CORE;
    case Kind::kHardwareThread:
      return HWLOC_OBJ_PU;
    case Kind::kL1Cache:
      return HWLOC_OBJ_L1CACHE;
    case Kind::kL2Cache:
      return HWLOC_OBJ_L2CACHE;
    case Kind::kL3Cache:
      return HWLOC_OBJ_L3CACHE;
    case Kind::kL4Cache:
      return HWLOC_OBJ_L4CACHE;
    case Kind::kL5Cache:
      return HWLOC_OBJ_L5CACHE;
  }
  WEFT_CHECK(false);
}

// The CPUs of each object of the kind, neighbours beside one another. Where the machine does not say what its cores
// are, its threads; where it has nothing else of the kind, the machine.
std::vector<CpuSet> Objects(hwloc_topology_t topology, Kind kind) {
  hwloc_obj_type_t type = TypeOf(kind);
  if (type == HWLOC_OBJ_CORE && hwloc_get_nbobjs_by_type(topology, type) <= 0) type = HWLOC_OBJ_PU;
  std::vector<CpuSet> objects;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    // A NUMA node may have memory alone.
    if (!hwloc_bitmap_iszero(object->cpuset)) objects.push_back(Copy(object->cpuset));
  }
  if (objects.empty()) objects.push_back(Copy(hwloc_topology_get_topology_cpuset(topology)));
  return objects;
}

// `count` of the objects from the one at `first` on; after the last comes the first.
CpuSet Union(const std::vector<CpuSet>& objects, size_t first, size_t count) {
  CpuSet all = NewSet();
  for (size_t i = 0; i < std::min(count, objects.size()); ++i) {
    hwloc_bitmap_or(all.get(), all.get(), objects[(first + i) % objects.size()].get());
  }
  return all;
}

// Side by side, without those left over at the end that make no full group.
std::vector<CpuSet> Groups(const std::vector<CpuSet>& objects, size_t count) {
  std::vector<CpuSet> groups;
  for (size_t first = 0; first == 0 || first + count <= objects.size(); first += count)
    groups.push_back(Union(objects, first, count));
  return groups;
}

// The groups of `count` of `objects` for ranks of one domain: within it, or, where it is smaller than one, from its
// first object on.
std::vector<CpuSet> GroupsIn(hwloc_const_bitmap_t domain, const std::vector<CpuSet>& objects, size_t count) {
  std::vector<CpuSet> inside;
  size_t first = objects.size();
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!hwloc_bitmap_intersects(objects[i].get(), domain)) continue;
    first = std::min(first, i);
    inside.push_back(Copy(objects[i].get()));
  }
  if (inside.size() >= count) return Groups(inside, count);
  std::vector<CpuSet> groups;
  if (first < objects.size()) groups.push_back(Union(objects, first, count));
  return groups;
}

std::vector<CpuSet> MappedPlaces(hwloc_topology_t topology, const Group& bind_to, const Group& map_by) {
  const std::vector<CpuSet> objects = Objects(topology, bind_to.kind);
  std::vector<std::vector<CpuSet>> groups_of_domains;
  size_t most = 0;
  for (const CpuSet& domain : Groups(Objects(topology, map_by.kind), static_cast<size_t>(map_by.count))) {
    groups_of_domains.push_back(GroupsIn(domain.get(), objects, static_cast<size_t>(bind_to.count)));
    most = std::max(most, groups_of_domains.back().size());
  }
  std::vector<CpuSet> places;
  for (size_t round = 0; round < most; ++round) {
    for (std::vector<CpuSet>& groups : groups_of_domains) {
      // A domain of which CPUs are kept from us has fewer.
      if (round < groups.size()) places.push_back(std::move(groups[round]));
    }
  }
  return places;
}

Result<std::vector<CpuSet>, PmiError> UserPlaces(hwloc_topology_t topology, const std::vector<std::vector<int>>& user) {
  const hwloc_const_bitmap_t allowed = hwloc_topology_get_topology_cpuset(topology);
  std::vector<CpuSet> places;
  for (const std::vector<int>& cpus : user) {
    places.push_back(NewSet());
    for (const int cpu : cpus) {
      if (!hwloc_bitmap_isset(allowed, static_cast<unsigned>(cpu))) {
        return PmiError{"-bind-to user: names CPU " + std::to_string(cpu) + ", but the usable CPUs are " +
                        ToText(allowed)};
      }
      hwloc_bitmap_set(places.back().get(), static_cast<unsigned>(cpu));
    }
  }
  return places;
}

PmiError Because(const char* what) { return {std::string("hwloc cannot ") + what + ": " + std::strerror(errno)}; }

}  // namespace

Result<std::vector<CpuSet>, PmiError> PlacesOf(hwloc_topology_t topology, const BindingRequest& request) {
  if (!request.user.empty()) return UserPlaces(topology, request.user);
  return MappedPlaces(topology, request.bind_to, request.map_by);
}

Result<std::unique_ptr<Binder>, PmiError> Binder::OfThisHost() {
  hwloc_topology_t loaded = nullptr;
  if (hwloc_topology_init(&loaded) != 0) return Because("begin");
  Topology topology(loaded);
  if (hwloc_topology_load(loaded) != 0) return Because("detect the topology of this machine");
  // HWLOC_XMLFILE and HWLOC_SYNTHETIC describe another one.
  if (!hwloc_topology_is_thissystem(loaded))
    return PmiError{"hwloc's variables describe another machine (HWLOC_XMLFILE, HWLOC_SYNTHETIC)"};
  CpuSet own = NewSet();
  if (hwloc_get_cpubind(loaded, own.get(), HWLOC_CPUBIND_THREAD) != 0) return Because("tell which CPUs can be used");
  if (hwloc_topology_restrict(loaded, own.get(), 0) != 0) return Because("leave out the CPUs that cannot be used");
  return std::unique_ptr<Binder>(new Binder(std::move(topology), std::move(own)));
}

Binder::~Binder() { Unbind(); }

void Binder::Unbind() { hwloc_set_cpubind(topology_.get(), own_.get(), HWLOC_CPUBIND_THREAD); }

std::string Binder::Choose(const BindingRequest& request) {
  auto places = PlacesOf(topology_.get(), request);
  if (!places) return places.error().message;
  places_ = std::move(places).value();
  return {};
}

std::string Binder::Bind(size_t index) {
  WEFT_CHECK(!places_.empty());
  const hwloc_const_bitmap_t place = places_[index % places_.size()].get();
  if (hwloc_set_cpubind(topology_.get(), place, HWLOC_CPUBIND_THREAD) == 0) return {};
  return "CPUs " + ToText(place) + ": " + std::strerror(errno);
}

}  // namespace weft::pmi
