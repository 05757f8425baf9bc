#include "mpi_hybrid/datatype/constructors.h"

#include <algorithm>

namespace weft::mpi {
namespace {

bool Add(MPI_Aint a, MPI_Aint b, MPI_Aint* sum) { return !__builtin_add_overflow(a, b, sum); }
bool Multiply(MPI_Aint a, MPI_Aint b, MPI_Aint* product) { return !__builtin_mul_overflow(a, b, product); }

bool IsDense(const Datatype& type) {
  if (type.extent != type.size) return false;
  return type.size == 0 || (type.layout.size() == 1 && type.pieces == 1 && type.layout[0].offset == 0);
}

}  // namespace

// Takes the bounds [lb, ub) of elements at displacement ... displacement + last into [*low, *high).
void TypeBuilder::Widen(MPI_Aint lb, MPI_Aint ub, bool* known, MPI_Aint* low, MPI_Aint* high, MPI_Aint displacement,
                        MPI_Aint last) {
  if (!weft::mpi::Add(lb, displacement, &lb) || !weft::mpi::Add(ub, displacement, &ub) ||
      !weft::mpi::Add(last < 0 ? lb : ub, last, last < 0 ? &lb : &ub)) {
    overflow_ = true;
    return;
  }
  *low = *known ? std::min(*low, lb) : lb;
  *high = *known ? std::max(*high, ub) : ub;
  *known = true;
}

void TypeBuilder::Add(const Datatype& old, MPI_Aint displacement, MPI_Aint count, std::optional<MPI_Aint> distance) {
  if (count == 0 || overflow_) return;
  const MPI_Aint step = distance.value_or(old.extent);
  MPI_Aint last = 0, bytes = 0, past = 0;
  if (!Multiply(step, count - 1, &last) || !Multiply(step, count, &past) || !Multiply(old.size, count, &bytes) ||
      !weft::mpi::Add(size_, bytes, &size_)) {
    overflow_ = true;
    return;
  }
  alignment_ = std::max(alignment_, old.alignment);
  if (old.size > 0 || old.lb != 0 || old.extent != 0) {
    Widen(old.lb, old.lb + old.extent, &bounds_known_, &lb_, &ub_, displacement, last);
  }
  if (old.size == 0) return;
  Widen(old.true_lb, old.true_lb + old.true_extent, &true_bounds_known_, &true_lb_, &true_ub_, displacement, last);
  if (overflow_) return;
  AppendData(old, displacement, count, step, bytes);
}

// Indexed types may have millions of blocks, so that the common ones allocate nothing.
void TypeBuilder::AppendData(const Datatype& old, MPI_Aint displacement, MPI_Aint count, MPI_Aint step, MPI_Aint bytes) {
  if (old.dense && step == old.extent) {
    const Run block{0, bytes};
    layout_.Append({&block, 1}, displacement);
  } else if (count == 1) {
    layout_.Append(old.layout, displacement);
  } else {
    layout_.Append(Repeat(old.layout, count, step), displacement);
  }
  if (old.signature.size() == 1) {
    const SignaturePart part{old.signature[0].basic, old.signature[0].count * count};
    signature_.Append({&part, 1});
  } else if (count == 1) {
    signature_.Append(old.signature);
  } else {
    signature_.Append(Repeat(old.signature, count));
  }
}

Ref<Datatype> TypeBuilder::Finish(bool padded) {
  auto type = MakeRef<Datatype>();
  MPI_Aint ub = ub_, padding = 0;
  if (__builtin_sub_overflow(ub_, lb_, &type->extent)) return nullptr;
  if (__builtin_sub_overflow(true_ub_, true_lb_, &type->true_extent)) return nullptr;
  if (padded && type->extent > 0 && type->extent % alignment_ != 0) padding = alignment_ - type->extent % alignment_;
  if (overflow_ || !weft::mpi::Add(ub, padding, &ub)) return nullptr;
  type->lb = marker_lb_.value_or(lb_);
  if (__builtin_sub_overflow(marker_ub_.value_or(ub), type->lb, &type->extent)) return nullptr;
  type->true_lb = true_lb_;
  type->size = size_;
  type->alignment = alignment_;
  type->layout = layout_.Take();
  type->signature = signature_.Take();
  type->pieces = CountPieces(type->layout);
  type->dense = IsDense(*type);
  return type;
}

Ref<Datatype> MakeContiguous(MPI_Aint count, const Datatype& old) {
  TypeBuilder builder;
  builder.Add(old, 0, count);
  return builder.Finish();
}

Ref<Datatype> MakeVector(MPI_Aint count, MPI_Aint block_length, MPI_Aint stride_bytes, const Datatype& old) {
  const Ref<Datatype> block = MakeContiguous(block_length, old);
  if (!block) return nullptr;
  TypeBuilder builder;
  builder.Add(*block, 0, count, stride_bytes);
  return builder.Finish();
}

Ref<Datatype> MakeIndexed(std::span<const MPI_Aint> block_lengths, std::span<const MPI_Aint> displacements, const Datatype& old) {
  TypeBuilder builder;
  for (size_t i = 0; i < displacements.size(); ++i) builder.Add(old, displacements[i], block_lengths[i]);
  return builder.Finish();
}

Ref<Datatype> MakeIndexedBlock(MPI_Aint block_length, std::span<const MPI_Aint> displacements, const Datatype& old) {
  const Ref<Datatype> block = MakeContiguous(block_length, old);
  if (!block) return nullptr;
  TypeBuilder builder;
  for (const MPI_Aint displacement : displacements) builder.Add(*block, displacement, 1);
  return builder.Finish();
}

Ref<Datatype> MakeStruct(std::span<const MPI_Aint> block_lengths, std::span<const MPI_Aint> displacements,
                         std::span<const Ref<const Datatype>> types) {
  TypeBuilder builder;
  const Datatype* first = nullptr;
  bool several = false;  // different types; as in MPICH, only then is the extent rounded up
  for (size_t i = 0; i < displacements.size(); ++i) {
    if (block_lengths[i] > 0) {
      several = several || (first != nullptr && first != types[i].get());
      first = types[i].get();
    }
    if (types[i]->handle == MPI_LB) {
      if (block_lengths[i] > 0) builder.SetLowerBound(displacements[i]);
    } else if (types[i]->handle == MPI_UB) {
      if (block_lengths[i] > 0) builder.SetUpperBound(displacements[i]);
    } else {
      builder.Add(*types[i], displacements[i], block_lengths[i]);
    }
  }
  return builder.Finish(several);
}

Ref<Datatype> MakeResized(const Datatype& old, MPI_Aint lb, MPI_Aint extent) {
  MPI_Aint ub;
  if (!Add(lb, extent, &ub)) return nullptr;
  Ref<Datatype> type = MakeDuplicate(old);
  type->lb = lb;
  type->extent = extent;
  type->dense = IsDense(*type);
  return type;
}

Ref<Datatype> MakeDuplicate(const Datatype& old) {
  auto type = MakeRef<Datatype>();
  type->size = old.size;
  type->lb = old.lb;
  type->extent = old.extent;
  type->true_lb = old.true_lb;
  type->true_extent = old.true_extent;
  type->dense = old.dense;
  type->alignment = old.alignment;
  type->pieces = old.pieces;
  type->layout = old.layout;
  type->signature = old.signature;
  return type;
}

}  // namespace weft::mpi
