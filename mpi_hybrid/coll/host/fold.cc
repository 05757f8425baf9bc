#include "mpi_hybrid/coll/host/fold.h"

#include <algorithm>
#include <bit>

#include "base/copy.h"

namespace weft::mpi::coll {

void Fold::Begin(FoldOrder order, int ranks, MPI_Aint count, const Datatype& type, const Op& op) {
  count_ = count;
  type_ = &type;
  op_ = &op;
  if (order == order_ && ranks == ranks_) return;
  order_ = order;
  ranks_ = ranks;
  SetUnits();
}

void Fold::SetUnits() {
  const int ranks = ranks_;
  units_.clear();
  if (order_.shape == FoldOrder::Shape::kRing) return;
  if (order_.shape == FoldOrder::Shape::kBinomial) {
    for (int i = 0; i < ranks; ++i) units_.push_back({(i + order_.top) % ranks});
    return;
  }
  const size_t whole = std::bit_floor(static_cast<size_t>(ranks));
  const int extra = ranks - static_cast<int>(whole);
  for (int rank = 0; rank < ranks;) {
    if (rank < 2 * extra) {
      units_.push_back({rank, rank + 1});
      rank += 2;
    } else {
      units_.push_back({rank++});
    }
  }
}

MPI_Aint Fold::BlockBegin(int block) const {
  return count_ / ranks_ * block + std::min<MPI_Aint>(block, count_ % ranks_);
}

uint8_t* Fold::Aside(size_t depth, size_t bytes) {
  if (depth >= aside_.size()) aside_.resize(depth + 1);
  if (aside_[depth].size() < bytes) aside_[depth].resize(bytes);
  return aside_[depth].data();
}

void Fold::Compute(MPI_Aint first, MPI_Aint count, std::span<const uint8_t* const> inputs, uint8_t* out) {
  if (count == 0) return;
  if (order_.shape != FoldOrder::Shape::kRing) return Tree(0, units_.size(), count, inputs, out, 0);
  const MPI_Aint end = first + count;
  for (int block = 0; block < ranks_; ++block) {
    const MPI_Aint begin = std::max(first, BlockBegin(block)), stop = std::min(end, BlockBegin(block + 1));
    if (begin >= stop) continue;
    const MPI_Aint skipped = (begin - first) * type_->extent;
    Chain(block + 1, stop - begin, inputs, skipped, out + skipped);
  }
}

// An operation leaves its result in the right operand.
void Fold::Tree(size_t first, size_t units, MPI_Aint count, std::span<const uint8_t* const> inputs, uint8_t* out,
                size_t depth) {
  const size_t bytes = static_cast<size_t>(count * type_->size);
  if (units == 1) {
    const Unit& unit = units_[first];
    const int last = unit.second >= 0 ? unit.second : unit.rank;
    CopyBytes(out, inputs[static_cast<size_t>(last)], bytes);
    if (unit.second >= 0) op_->Apply(inputs[static_cast<size_t>(unit.rank)], out, count, *type_);
    return;
  }
  const size_t left = std::bit_floor(units - 1);
  Tree(first + left, units - left, count, inputs, out, depth + 1);
  if (left == 1 && units_[first].second < 0) {
    return op_->Apply(inputs[static_cast<size_t>(units_[first].rank)], out, count, *type_);
  }
  uint8_t* const aside = Aside(depth, bytes);
  Tree(first, left, count, inputs, aside, depth + 1);
  op_->Apply(aside, out, count, *type_);
}

void Fold::Chain(int from, MPI_Aint count, std::span<const uint8_t* const> inputs, MPI_Aint skipped,
                 uint8_t* out) const {
  CopyBytes(out, inputs[static_cast<size_t>(from % ranks_)] + skipped, static_cast<size_t>(count * type_->size));
  for (int i = 1; i < ranks_; ++i) {
    op_->Apply(inputs[static_cast<size_t>((from + i) % ranks_)] + skipped, out, count, *type_);
  }
}

}  // namespace weft::mpi::coll
