#ifndef MPI_HYBRID_COLL_HOST_FOLD_H_
#define MPI_HYBRID_COLL_HOST_FOLD_H_

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"

namespace weft::mpi::coll {

// The order in which the vectors of all ranks are combined. It is the order of the message-based algorithms, so that
// the result of a reduction is the same to the last bit wherever the ranks are (MPI 4.0 section 6.9.1).
struct FoldOrder {
  enum class Shape : uint8_t {
    kDoubling,  // pair neighbours until a power of two is left, then pairs of pairs, in the order of ranks
    kBinomial,  // the same, counted from `top`; the rest at the end
    kRing,      // block b from rank b + 1, around the ring, to rank b; commutative
  };
  Shape shape = Shape::kDoubling;
  int top = 0;

  bool operator==(const FoldOrder&) const = default;
};

// A reduction of `count` elements of each of `ranks` ranks. Any range of elements can be computed by itself. The type
// is dense.
class Fold {
 public:
  // Prepares the next reduction. `type` and `op` must outlive it.
  void Begin(FoldOrder order, int ranks, MPI_Aint count, const Datatype& type, const Op& op);

  // Computes elements [first, first + count) of the result into `out`, which must not overlap an input. inputs[rank]:
  // that rank's elements from `first` on.
  void Compute(MPI_Aint first, MPI_Aint count, std::span<const uint8_t* const> inputs, uint8_t* out);

 private:
  void Tree(size_t first, size_t units, MPI_Aint count, std::span<const uint8_t* const> inputs, uint8_t* out, size_t depth);
  void Chain(int from, MPI_Aint count, std::span<const uint8_t* const> inputs, MPI_Aint skipped, uint8_t* out) const;
  uint8_t* Aside(size_t depth, size_t bytes);
  MPI_Aint BlockBegin(int block) const;

  // A leaf of the tree: a rank, or two neighbours.
  struct Unit {
    int rank;
    int second = -1;
  };

  void SetUnits();

  FoldOrder order_;
  int ranks_ = 0;
  MPI_Aint count_ = 0;
  const Datatype* type_ = nullptr;
  const Op* op_ = nullptr;
  std::vector<Unit> units_;
  std::vector<std::vector<uint8_t>> aside_;  // by depth
};

}  // namespace weft::mpi::coll

#endif  // MPI_HYBRID_COLL_HOST_FOLD_H_
