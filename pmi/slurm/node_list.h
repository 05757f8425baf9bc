#ifndef PMI_SLURM_NODE_LIST_H_
#define PMI_SLURM_NODE_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pmi/error.h"

namespace weft::pmi::slurm {

// More hosts count as a mistake: "n[1-999999999]" must not exhaust the memory.
inline constexpr size_t kMostNodes = 65536;

// The hosts of a list in Slurm's short form, in its order:
//
//   a[1-3,07-09]-x[1,2],b     a1-x1 a1-x2 a2-x1 ... a09-x1 a09-x2 b
//
// The numbers of a range are padded with zeros to the length of the first one. An error quotes the wrong part of the
// list.
Result<std::vector<std::string>, PmiError> ExpandNodeList(std::string_view list);

}  // namespace weft::pmi::slurm

#endif  // PMI_SLURM_NODE_LIST_H_
