#ifndef PMI_PROCESS_MAPPING_H_
#define PMI_PROCESS_MAPPING_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::pmi {

// The placement of ranks by the launcher: PMI_process_mapping, "(vector,(0,2,4),...)". Each triple is the first node,
// the number of nodes, and the ranks on each. The list is repeated until all ranks are placed, as in MPICH.
class ProcessMapping {
 public:
  // `node_of_rank`: the node of each rank, from 0. At least one element.
  static ProcessMapping Of(std::span<const int> node_of_rank);
  // nullopt: the text is not understood.
  static std::optional<ProcessMapping> Parse(const std::string& text);
  std::string ToString() const;

  int NodeOf(int rank) const;
  // `size`: the number of ranks of the job.
  int RanksOnNodeOf(int rank, int size) const;
  bool is_one_node() const;

 private:
  struct Block {
    int first, nodes, ranks_on_each;
  };

  std::vector<Block> blocks_;  // at least one
  int round_ = 0;              // number of ranks that one pass through all blocks places
};

}  // namespace weft::pmi

#endif  // PMI_PROCESS_MAPPING_H_
