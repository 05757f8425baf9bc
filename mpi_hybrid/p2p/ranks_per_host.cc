#include "mpi_hybrid/p2p/ranks_per_host.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

namespace weft::mpi {

std::optional<int> RanksOnHostOf(int rank, const std::string& mapping) {
  const char kStart[] = "(vector,";
  if (mapping.compare(0, sizeof(kStart) - 1, kStart) != 0) return std::nullopt;
  std::map<int, int> ranks;  // by node
  int placed = 0, node_of_rank = -1;
  const char* at = mapping.c_str() + sizeof(kStart) - 1;
  int first, nodes, each, length;
  while (std::sscanf(at, "(%d,%d,%d)%n", &first, &nodes, &each, &length) == 3) {
    if (first < 0 || nodes <= 0 || each <= 0 || nodes > 1 << 20 || each > 1 << 20) return std::nullopt;
    for (int node = first; node < first + nodes; ++node) {
      ranks[node] += each;
      if (node_of_rank < 0 && rank < placed + each) node_of_rank = node;
      placed += each;
    }
    at += length;
    if (*at == ',') ++at;
  }
  if (*at != ')' || node_of_rank < 0) return std::nullopt;
  return ranks[node_of_rank];
}

}  // namespace weft::mpi
