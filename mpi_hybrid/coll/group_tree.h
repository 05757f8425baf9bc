#ifndef MPI_HYBRID_COLL_GROUP_TREE_H_
#define MPI_HYBRID_COLL_GROUP_TREE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// Lets the processes of a group agree on something in several rounds, over a communicator that contains all of them.
// Data goes up and down a binomial tree, which is the same in each round.
//
// A process may die in any round. That round is then an error at some processes and not at others, and the processes
// with the error leave. The others need not wait for them in the next round. A round fails at a process if its parent
// died, or if the parent failed and said so; the process passes the failure on to its children. If the parent is alive
// and has not failed, it has received all that it waited for. Therefore a process that goes on waits only for processes
// that go on as well, or for dead ones. For the same reason a failed send is no error here: its receiver is dead, and a
// process that depends on the receiver notices in the next round.
class GroupTree {
 public:
  // Uses `tag` on the collective context of `parent`, an intracommunicator that outlives this object. This process is
  // in `group`. `root`: a rank of the group.
  GroupTree(Comm& parent, const Group& group, int tag, int root = 0);

  // words = "and" of the words of all processes. At the root, `at_root` is called with the combined words before they
  // are sent down; if it fails, all processes fail. If this fails at a process, it clears the words, so that the
  // processes that receive them learn of the failure. The error is the first one that occurred, or MPI_ERR_OTHER.
  using AtRoot = std::function<Error(std::span<uint64_t>)>;
  Error And(std::span<uint64_t> words, const AtRoot& at_root = {});
  // Sends the root's bytes to all processes.
  Error Tell(void* data, size_t bytes);

 private:
  int RankAt(int place) const;
  void Put(const void* data, size_t bytes, int place) const;
  Error Get(void* data, size_t bytes, int place) const;
  // The children's places in the tree, and the parent's.
  std::vector<int> Children() const;
  int Above() const;

  Comm& parent_;
  const Group& group_;
  const int tag_, root_;
  const int place_;  // of this process in the tree: its rank, counted from the root
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_GROUP_TREE_H_
