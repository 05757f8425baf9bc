#ifndef MPI_HYBRID_CORE_PROCESS_MAPPING_H_
#define MPI_HYBRID_CORE_PROCESS_MAPPING_H_

#include <optional>
#include <string>
#include <vector>

namespace weft::mpi {

// Where the launcher put the ranks: PMI_process_mapping, "(vector,(0,2,4),...)", each triple the first node, the number
// of nodes, and the ranks on each; gone through again until all ranks are placed.
class ProcessMapping {
 public:
  // nullopt: not understood.
  static std::optional<ProcessMapping> Parse(const std::string& text);

  int NodeOf(int rank) const;
  // Of a job of `size` ranks.
  int RanksOnNodeOf(int rank, int size) const;
  bool is_one_node() const;

 private:
  struct Block {
    int first, nodes, ranks_on_each;
  };

  std::vector<Block> blocks_;  // at least one
  int round_ = 0;              // ranks that all of them place
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_PROCESS_MAPPING_H_
