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

  MPI_Group handle = MPI_GROUP_NULL;  // given when the program gets hold of it
  std::vector<ProcessId> members;

  int size() const { return static_cast<int>(members.size()); }
  // Of `process`; MPI_UNDEFINED when it is not a member.
  int RankOf(ProcessId process) const;

  static Group* Find(MPI_Group handle);  // MPI_GROUP_EMPTY too

  // A handle for the program, which owns a reference until TakeBack. The empty group's is always MPI_GROUP_EMPTY; a
  // group that the program holds already is copied, so that each handle is freed once.
  static MPI_Group Give(const Ref<Group>& group);
  static void TakeBack(Group& group);  // MPI_Group_free; nothing for MPI_GROUP_EMPTY

 private:
  friend Ref<Group> MakeGroup(std::vector<ProcessId> members);

  bool names_ = false;  // its members, in the table of processes
  // By process, MPI_UNDEFINED for others; made by the first RankOf that is not trivial.
  mutable std::vector<int> ranks_;
};

Ref<Group> MakeGroup(std::vector<ProcessId> members);

// Set operations (MPI 4.0 section 7.3.2); order of the result as there. Arguments are valid.
Ref<Group> Union(const Group& a, const Group& b);
Ref<Group> Intersection(const Group& a, const Group& b);
Ref<Group> Difference(const Group& a, const Group& b);
Ref<Group> Include(const Group& group, const std::vector<int>& ranks);
Ref<Group> Exclude(const Group& group, const std::vector<int>& ranks);
int Compare(const Group& a, const Group& b);  // MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COMM_GROUP_H_
