#include "mpi_hybrid/comm/group.h"

#include <mpi.h>

#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/group_arguments.h"

// MPI 4.0 section 7.3.
using namespace weft::mpi;

namespace {

using SetOperation = Ref<Group>(const Group&, const Group&);

int Combine(const char* name, SetOperation* operation, MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return Anywhere(name, [&]() -> Error {
    Group *a, *b;
    WEFT_MPI_TRY(FindGroup(group1, "group1", &a));
    WEFT_MPI_TRY(FindGroup(group2, "group2", &b));
    WEFT_MPI_TRY(CheckNotNull(newgroup, "newgroup"));
    *newgroup = Group::Give(operation(*a, *b));
    return {};
  });
}

// Ranks of the new group, or of those left out of it.
using Selection = Ref<Group>(const Group&, const std::vector<int>&);

int Select(const char* name, Selection* selection, MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return Anywhere(name, [&]() -> Error {
    Group* from;
    WEFT_MPI_TRY(FindGroup(group, "group", &from));
    WEFT_MPI_TRY(CheckDistinctRanks(n, ranks, from->size()));
    WEFT_MPI_TRY(CheckNotNull(newgroup, "newgroup"));
    *newgroup = Group::Give(selection(*from, std::vector<int>(ranks, ranks + n)));
    return {};
  });
}

int SelectRanges(const char* name, Selection* selection, MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return Anywhere(name, [&]() -> Error {
    Group* from;
    WEFT_MPI_TRY(FindGroup(group, "group", &from));
    std::vector<int> ranks;
    WEFT_MPI_TRY(ExpandRanges(n, ranges, from->size(), &ranks));
    WEFT_MPI_TRY(CheckNotNull(newgroup, "newgroup"));
    *newgroup = Group::Give(selection(*from, ranks));
    return {};
  });
}

}  // namespace

int PMPI_Group_size(MPI_Group group, int* size) {
  return Anywhere("MPI_Group_size", [&]() -> Error {
    Group* found;
    WEFT_MPI_TRY(FindGroup(group, "group", &found));
    WEFT_MPI_TRY(CheckNotNull(size, "size"));
    *size = found->size();
    return {};
  });
}
WEFT_MPI_ALIAS(Group_size)

int PMPI_Group_rank(MPI_Group group, int* rank) {
  return Anywhere("MPI_Group_rank", [&]() -> Error {
    Group* found;
    WEFT_MPI_TRY(FindGroup(group, "group", &found));
    WEFT_MPI_TRY(CheckNotNull(rank, "rank"));
    *rank = found->RankOf(Self().local->members[0]);
    return {};
  });
}
WEFT_MPI_ALIAS(Group_rank)

int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]) {
  return Anywhere("MPI_Group_translate_ranks", [&]() -> Error {
    Group *from, *to;
    WEFT_MPI_TRY(FindGroup(group1, "group1", &from));
    WEFT_MPI_TRY(FindGroup(group2, "group2", &to));
    WEFT_MPI_TRY(CheckArgumentNotNegative(n, "n"));
    if (n == 0) return {};
    WEFT_MPI_TRY(CheckNotNull(ranks1, "ranks1"));
    WEFT_MPI_TRY(CheckNotNull(ranks2, "ranks2"));
    for (int i = 0; i < n; ++i) {
      if (ranks1[i] == MPI_PROC_NULL || (ranks1[i] >= 0 && ranks1[i] < from->size())) continue;
      return Error(MPI_ERR_RANK, "ranks1[" + std::to_string(i) + "], " + std::to_string(ranks1[i]) +
                                     ", is not a rank of group1, which has " + std::to_string(from->size()) +
                                     ", or MPI_PROC_NULL");
    }
    for (int i = 0; i < n; ++i) {
      ranks2[i] =
          ranks1[i] == MPI_PROC_NULL ? MPI_PROC_NULL : to->RankOf(from->members[static_cast<size_t>(ranks1[i])]);
    }
    return {};
  });
}
WEFT_MPI_ALIAS(Group_translate_ranks)

int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int* result) {
  return Anywhere("MPI_Group_compare", [&]() -> Error {
    Group *a, *b;
    WEFT_MPI_TRY(FindGroup(group1, "group1", &a));
    WEFT_MPI_TRY(FindGroup(group2, "group2", &b));
    WEFT_MPI_TRY(CheckNotNull(result, "result"));
    *result = Compare(*a, *b);
    return {};
  });
}
WEFT_MPI_ALIAS(Group_compare)

int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return Combine("MPI_Group_union", Union, group1, group2, newgroup);
}
WEFT_MPI_ALIAS(Group_union)

int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return Combine("MPI_Group_intersection", Intersection, group1, group2, newgroup);
}
WEFT_MPI_ALIAS(Group_intersection)

int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return Combine("MPI_Group_difference", Difference, group1, group2, newgroup);
}
WEFT_MPI_ALIAS(Group_difference)

int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return Select("MPI_Group_incl", Include, group, n, ranks, newgroup);
}
WEFT_MPI_ALIAS(Group_incl)

int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return Select("MPI_Group_excl", Exclude, group, n, ranks, newgroup);
}
WEFT_MPI_ALIAS(Group_excl)

int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return SelectRanges("MPI_Group_range_incl", Include, group, n, ranges, newgroup);
}
WEFT_MPI_ALIAS(Group_range_incl)

int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return SelectRanges("MPI_Group_range_excl", Exclude, group, n, ranges, newgroup);
}
WEFT_MPI_ALIAS(Group_range_excl)

// MPI_GROUP_EMPTY may be freed, since it is what set operations without result return.
int PMPI_Group_free(MPI_Group* group) {
  return Anywhere("MPI_Group_free", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(group, "group"));
    Group* found;
    WEFT_MPI_TRY(FindGroup(*group, "group", &found));
    Group::TakeBack(*found);
    *group = MPI_GROUP_NULL;
    return {};
  });
}
WEFT_MPI_ALIAS(Group_free)
