#ifndef PMI_PROCESS_MAPPING_H_
#define PMI_PROCESS_MAPPING_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::pmi {

// Where the launcher put the ranks: PMI_process_mapping, "(vector,(0,2,4),...)", each triple the first node, the number
// of nodes, and the ranks on each; gone through again until all ranks are placed, as MPICH does.
class ProcessMapping {
 public:
  // Of which each element is the node of a rank, from 0. At least one.
  static ProcessMapping Of(std::span<const int> node_of_rank);
  // nullopt: not understood.
  static std::optional<ProcessMapping> Parse(const std::string& text);
  std::string ToString() const;

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

}  // namespace weft::pmi

#endif  // PMI_PROCESS_MAPPING_H_
