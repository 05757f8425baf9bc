#include "mpi_hybrid/api/group_arguments.h"

#include <cstdint>
#include <cstdio>

#include "mpi_hybrid/api/entry.h"

namespace weft::mpi {
namespace {

std::string Element(const char* array, int index, int value) {
  return std::string(array) + "[" + std::to_string(index) + "], " + std::to_string(value) + ",";
}

Error NotInGroup(int mpi_class, const std::string& what, int size) {
  if (size == 0) return Error(mpi_class, what + " is not a rank of the group, which is empty");
  return Error(mpi_class, what + " is not a rank of the group (0 to " + std::to_string(size - 1) + ")");
}

}  // namespace

Error FindGroup(MPI_Group handle, const char* argument, Group** group) {
  *group = Group::Find(handle);
  if (*group != nullptr) [[likely]]
    return {};
  if (handle == MPI_GROUP_NULL) return Error(MPI_ERR_GROUP, std::string(argument) + " is MPI_GROUP_NULL");
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", static_cast<unsigned>(handle));
  return Error(MPI_ERR_GROUP, std::string(argument) + " " + text + " is not a group (never made, or freed)");
}

Error CheckArgumentNotNegative(int value, const char* argument) {
  if (value >= 0) [[likely]]
    return {};
  return Error(MPI_ERR_ARG, std::string(argument) + " " + std::to_string(value) + " is negative");
}

Error CheckDistinctRanks(int n, const int ranks[], int size) {
  WEFT_MPI_TRY(CheckArgumentNotNegative(n, "n"));
  if (n > 0) WEFT_MPI_TRY(CheckNotNull(ranks, "ranks"));
  std::vector<int> place(static_cast<size_t>(size), -1);
  for (int i = 0; i < n; ++i) {
    if (ranks[i] < 0 || ranks[i] >= size) return NotInGroup(MPI_ERR_RANK, Element("ranks", i, ranks[i]), size);
    int& first = place[static_cast<size_t>(ranks[i])];
    if (first >= 0)
      return Error(MPI_ERR_RANK,
                   Element("ranks", i, ranks[i]) + " is a duplicate of ranks[" + std::to_string(first) + "]");
    first = i;
  }
  return {};
}

Error ExpandRanges(int n, const int ranges[][3], int size, std::vector<int>* ranks) {
  WEFT_MPI_TRY(CheckArgumentNotNegative(n, "n"));
  if (n > 0) WEFT_MPI_TRY(CheckNotNull(ranges, "ranges"));
  std::vector<bool> seen(static_cast<size_t>(size));
  for (int i = 0; i < n; ++i) {
    const int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
    const std::string name = "ranges[" + std::to_string(i) + "], " + std::to_string(first) + " to " +
                             std::to_string(last) + " by " + std::to_string(stride) + ",";
    if (first < 0 || first >= size) return NotInGroup(MPI_ERR_ARG, "the first rank of " + name, size);
    if (stride == 0) return Error(MPI_ERR_ARG, name + " has the stride 0");
    if ((last - first) * stride < 0)
      return Error(MPI_ERR_ARG, name + " has a stride that leads away from its last rank");
    for (int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
      if (rank < 0 || rank >= size)
        return NotInGroup(MPI_ERR_ARG, "rank " + std::to_string(rank) + " of " + name, size);
      if (seen[static_cast<size_t>(rank)])
        return Error(MPI_ERR_ARG, "rank " + std::to_string(rank) + " of " + name + " is a duplicate");
      seen[static_cast<size_t>(rank)] = true;
      ranks->push_back(static_cast<int>(rank));
    }
  }
  return {};
}

}  // namespace weft::mpi
