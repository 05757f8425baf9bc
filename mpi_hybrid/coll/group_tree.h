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

// Processes of a group that agree on something in several rounds, over a communicator that they have in common: up and down a binomial tree, the same in each round.
//
// One of them may die in any round, which is then an error at some and not at others, and those with the error leave. That is no reason for others to wait for
// them in the next round: a round fails at a process when the one above it died, or failed and says so, and it says so to those below; the one above, if it lives and
// has not failed, has had what it waited for. So whoever goes on waits for one that goes on too, or for a dead one. That a message cannot be sent is therefore no error: the
// one that it was for is dead, and whoever needs it notices in the next round.
class GroupTree {
 public:
  // `tag` on the collective channel of `parent`, an intracommunicator that outlives this; this process is in `group`. `root`: a rank of the group.
  GroupTree(Comm& parent, const Group& group, int tag, int root = 0);

  // words = "and" of all processes' words. `at_root` is called there, with what came up, before it goes down again: an error of it is one of all.
  // Where this fails nothing is left of the words, and who gets those learns so; with MPI_ERR_OTHER or the error that came first.
  using AtRoot = std::function<Error(std::span<uint64_t>)>;
  Error And(std::span<uint64_t> words, const AtRoot& at_root = {});
  // The root's bytes to all.
  Error Tell(void* data, size_t bytes);

 private:
  int RankAt(int place) const;
  void Put(const void* data, size_t bytes, int place) const;
  Error Get(void* data, size_t bytes, int place) const;
  // Of the places below; of the one above.
  std::vector<int> Children() const;
  int Above() const;

  Comm& parent_;
  const Group& group_;
  const int tag_, root_;
  const int place_;  // of this process in the tree: its rank, counted from the root
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_GROUP_TREE_H_
