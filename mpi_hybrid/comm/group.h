#ifndef MPI_HYBRID_COMM_GROUP_H_
#define MPI_HYBRID_COMM_GROUP_H_

#include <mpi.h>

#include <vector>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/core/ref.h"

namespace weft::mpi {

// MPI_Group: processes in order of rank. Immutable.
class Group : public RefCounted<Group> {
 public:
  Group() = default;
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  MPI_Group handle = MPI_GROUP_NULL;  // set when the program gets a handle
  std::vector<ProcessId> members;

  int size() const { return static_cast<int>(members.size()); }
  // The rank of `process`; MPI_UNDEFINED if it is not a member.
  int RankOf(ProcessId process) const;

  static Group* Find(MPI_Group handle);  // also MPI_GROUP_EMPTY

  // Returns a handle for the program, which owns a reference until TakeBack. The handle of an empty group is always
  // MPI_GROUP_EMPTY. A group for which the program has a handle already is copied, so that each handle is freed once.
  static MPI_Group Give(const Ref<Group>& group);
  static void TakeBack(Group& group);  // MPI_Group_free; no effect on MPI_GROUP_EMPTY

 private:
  friend Ref<Group> MakeGroup(std::vector<ProcessId> members);

  bool names_ = false;  // it has named its members in the table of processes (ProcessTable::Name)
  // Ranks by process; MPI_UNDEFINED for processes that are not members. Filled by the first RankOf that is not trivial.
  mutable std::vector<int> ranks_;
};

Ref<Group> MakeGroup(std::vector<ProcessId> members);

// Set operations (MPI 4.0 section 7.3.2). The order of the result follows that section. Arguments are valid.
Ref<Group> Union(const Group& a, const Group& b);
Ref<Group> Intersection(const Group& a, const Group& b);
Ref<Group> Difference(const Group& a, const Group& b);
Ref<Group> Include(const Group& group, const std::vector<int>& ranks);
Ref<Group> Exclude(const Group& group, const std::vector<int>& ranks);
int Compare(const Group& a, const Group& b);  // MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COMM_GROUP_H_
