#ifndef MPI_HYBRID_DATATYPE_CONSTRUCTORS_H_
#define MPI_HYBRID_DATATYPE_CONSTRUCTORS_H_

#include <mpi.h>

#include <optional>
#include <span>

#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/layout.h"

namespace weft::mpi {

// Builds a type from elements of other types, in the order of the type map, and computes its bounds (MPI 4.0 section
// 5.1.7). As in MPICH, bounds that MPI_Type_create_resized set apply only to the type that it made; so do those of
// MPI_LB and MPI_UB.
class TypeBuilder {
 public:
  // Adds `count` elements of `old`. The first is at `displacement` bytes, each further one `distance` bytes (default:
  // the extent) behind the one before.
  void Add(const Datatype& old, MPI_Aint displacement, MPI_Aint count, std::optional<MPI_Aint> distance = {});
  void SetLowerBound(MPI_Aint displacement) { marker_lb_ = std::min(displacement, marker_lb_.value_or(displacement)); }
  void SetUpperBound(MPI_Aint displacement) { marker_ub_ = std::max(displacement, marker_ub_.value_or(displacement)); }

  // `padded`: the extent is rounded up to the alignment. Null: a number overflowed.
  Ref<Datatype> Finish(bool padded = false);

 private:
  void AppendData(const Datatype& old, MPI_Aint displacement, MPI_Aint count, MPI_Aint step, MPI_Aint bytes);
  void Widen(MPI_Aint lb, MPI_Aint ub, bool* known, MPI_Aint* low, MPI_Aint* high, MPI_Aint displacement, MPI_Aint last);

  bool overflow_ = false;
  bool bounds_known_ = false, true_bounds_known_ = false;
  MPI_Aint lb_ = 0, ub_ = 0, true_lb_ = 0, true_ub_ = 0, size_ = 0;
  std::optional<MPI_Aint> marker_lb_, marker_ub_;
  int alignment_ = 1;
  LayoutBuilder layout_;
  SignatureBuilder signature_;
};

// Blocks of `block_lengths[i]` elements at `displacements[i]` bytes.
Ref<Datatype> MakeIndexed(std::span<const MPI_Aint> block_lengths, std::span<const MPI_Aint> displacements, const Datatype& old);
Ref<Datatype> MakeIndexedBlock(MPI_Aint block_length, std::span<const MPI_Aint> displacements, const Datatype& old);

// A part of an array (MPI 4.0 section 5.1.3): sizes, subsizes and starts of each dimension, in elements.
Ref<Datatype> MakeSubarray(std::span<const MPI_Aint> sizes, std::span<const MPI_Aint> subsizes, std::span<const MPI_Aint> starts,
                           int order, const Datatype& old);

// One process's part of a distributed array (MPI 4.0 section 5.1.4, with its arguments), which are valid.
struct Distribution {
  int processes = 1, rank = 0;
  std::span<const MPI_Aint> sizes;
  std::span<const int> kinds, arguments, grid;
  int order = MPI_ORDER_C;
};
Ref<Datatype> MakeDarray(const Distribution& distribution, const Datatype& old);

// MPI 4.0 section 19.1.5. The same arguments return the same type, which is never freed. Null: no type has that
// precision and range.
Datatype* F90Real(int precision, int range);
Datatype* F90Complex(int precision, int range);
Datatype* F90Integer(int range);
// MPI_Type_match_size; MPI_DATATYPE_NULL: there is none.
MPI_Datatype MatchSize(int type_class, MPI_Count size);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_CONSTRUCTORS_H_
