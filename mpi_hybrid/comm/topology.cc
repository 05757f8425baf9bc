#include "mpi_hybrid/comm/topology.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace weft::mpi {

int Topology::RankOf(std::span<const int> at) const {
  int rank = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    int coordinate = at[i];
    if (coordinate < 0 || coordinate >= dims[i]) {
      if (!periods[i]) return MPI_PROC_NULL;
      coordinate %= dims[i];
      if (coordinate < 0) coordinate += dims[i];
    }
    rank = rank * dims[i] + coordinate;
  }
  return rank;
}

std::vector<int> Topology::CoordinatesOf(int rank) const {
  std::vector<int> at(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    at[i] = rank % dims[i];
    rank /= dims[i];
  }
  return at;
}

int Topology::Shifted(int rank, size_t dimension, int64_t displacement) const {
  std::vector<int> at = CoordinatesOf(rank);
  int64_t moved = at[dimension] + displacement;
  const int size = dims[dimension];
  if (moved < 0 || moved >= size) {
    if (!periods[dimension]) return MPI_PROC_NULL;
    moved = (moved % size + size) % size;
  }
  at[dimension] = static_cast<int>(moved);
  return RankOf(at);
}

std::span<const int> Topology::GraphNeighbours(int rank) const {
  const auto at = static_cast<size_t>(rank);
  const int from = at == 0 ? 0 : index[at - 1];
  return std::span<const int>(edges).subspan(static_cast<size_t>(from), static_cast<size_t>(index[at] - from));
}

std::vector<int> Topology::InNeighbours(int rank) const {
  if (kind == MPI_DIST_GRAPH) return sources;
  return OutNeighbours(rank);  // both other kinds are symmetric in what neighbourhood collectives do
}

std::vector<int> Topology::OutNeighbours(int rank) const {
  switch (kind) {
    case MPI_CART: {
      std::vector<int> neighbours;
      for (size_t i = 0; i < dims.size(); ++i) {
        neighbours.push_back(Shifted(rank, i, -1));
        neighbours.push_back(Shifted(rank, i, +1));
      }
      return neighbours;
    }
    case MPI_GRAPH: {
      const std::span<const int> neighbours = GraphNeighbours(rank);
      return {neighbours.begin(), neighbours.end()};
    }
    case MPI_DIST_GRAPH:
      return destinations;
    default:
      return {};
  }
}

namespace {

// The product of `count` numbers in descending order whose largest and smallest differ least; among those the one with the
// largest last number, as MPICH chooses, then the one with the least sum. Exact search over the divisors.
class DimsSearch {
 public:
  DimsSearch(int nodes, size_t count) : chosen_(count), nodes_(nodes) {
    for (int divisor = 1; int64_t{divisor} * divisor <= nodes; ++divisor) {
      if (nodes % divisor != 0) continue;
      divisors_.push_back(divisor);
      if (divisor != nodes / divisor) divisors_.push_back(nodes / divisor);
    }
    std::sort(divisors_.begin(), divisors_.end());
  }

  std::vector<int> Find() {
    Try(0, nodes_, nodes_);
    return best_;
  }

 private:
  // Whether base^exponent <= limit.
  static bool PowerFits(int64_t base, size_t exponent, int64_t limit) {
    int64_t power = 1;
    for (; exponent > 0 && power <= limit; --exponent) power *= base;
    return power <= limit;
  }

  // Chooses dimensions from `at` on, of product `left`, none above `most`.
  void Try(size_t at, int left, int most) {
    const size_t open = chosen_.size() - at;
    if (open == 1) {
      chosen_[at] = left;
      if (left <= most && (best_.empty() || Rank(chosen_) <= Rank(best_))) best_ = chosen_;
      return;
    }
    for (int divisor : divisors_) {
      if (divisor > most || divisor > left) break;
      if (left % divisor != 0 || PowerFits(divisor, open, left - 1))
        continue;  // the rest, none larger, would not reach `left`
      if (!CanBeBest(at == 0 ? divisor : chosen_[0], left / divisor, open - 1)) {
        if (at == 0) break;  // larger ones differ still more from their smallest
        continue;
      }
      chosen_[at] = divisor;
      Try(at + 1, left / divisor, divisor);
    }
  }

  // The smallest of `open` numbers of product `left` is at most their geometric mean.
  bool CanBeBest(int largest, int left, size_t open) const {
    if (best_.empty()) return true;
    const int64_t needed = int64_t{largest} - (best_.front() - best_.back());
    return needed <= 1 || PowerFits(needed, open, left);
  }

  static std::tuple<int, int, int64_t> Rank(const std::vector<int>& dims) {
    return {dims.front() - dims.back(), -dims.back(), std::accumulate(dims.begin(), dims.end(), int64_t{0})};
  }

  std::vector<int> divisors_, chosen_, best_;
  const int nodes_;
};

}  // namespace

Error ChooseDims(int nodes, std::span<int> dims) {
  int64_t given = 1;
  size_t open = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0)
      return Error(MPI_ERR_DIMS, "dims[" + std::to_string(i) + "] is negative: " + std::to_string(dims[i]));
    if (dims[i] == 0) ++open;
    if (dims[i] > 0) given = std::min<int64_t>(given * dims[i], INT32_MAX);
  }
  const bool fits = open == 0 ? given == nodes : nodes % given == 0;
  if (!fits) {
    return Error(MPI_ERR_DIMS, "nnodes " + std::to_string(nodes) +
                                   (open == 0 ? " is not the product" : " is not a multiple of the product") +
                                   " of the dimensions given, " + std::to_string(given));
  }
  if (open == 0) return {};
  const std::vector<int> chosen = DimsSearch(static_cast<int>(nodes / given), open).Find();
  size_t next = 0;
  for (int& dim : dims) {
    if (dim == 0) dim = chosen[next++];
  }
  return {};
}

}  // namespace weft::mpi
