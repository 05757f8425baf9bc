#include <algorithm>
#include <vector>

#include "mpi_hybrid/datatype/constructors.h"

// The constructors for parts of arrays: from the dimension that varies fastest in memory outwards, one step per dimension.
namespace weft::mpi {
namespace {

// The dimensions in the order from fastest to slowest.
size_t Dimension(int order, size_t step, size_t dimensions) {
  return order == MPI_ORDER_FORTRAN ? step : dimensions - 1 - step;
}

bool ExtentOfArray(std::span<const MPI_Aint> sizes, MPI_Aint element, MPI_Aint* extent) {
  *extent = element;
  for (const MPI_Aint size : sizes) {
    if (__builtin_mul_overflow(*extent, size, extent)) return false;
  }
  return true;
}

// One dimension of a distributed array: which of its `size` indices are this process's.
struct Slice {
  MPI_Aint first = 0;   // index of the first block
  MPI_Aint block = 0;   // indices in a block
  MPI_Aint blocks = 0;  // whole blocks
  MPI_Aint cycle = 0;   // from block to block
  MPI_Aint rest = 0;    // indices in the block behind the whole ones
};

Slice SliceOf(MPI_Aint size, int kind, int argument, int processes, int coordinate) {
  Slice slice;
  if (kind == MPI_DISTRIBUTE_NONE) return {0, size, 1, 0, 0};
  const bool is_block = kind == MPI_DISTRIBUTE_BLOCK;
  const MPI_Aint default_block = is_block ? (size + processes - 1) / processes : 1;
  slice.block = argument == MPI_DISTRIBUTE_DFLT_DARG ? default_block : argument;
  slice.cycle = slice.block * processes;
  slice.first = slice.block * coordinate;
  if (slice.first >= size) return {};
  const MPI_Aint behind = size - slice.first;  // indices from the first one on
  if (is_block) {
    const MPI_Aint mine = std::min(slice.block, behind);
    return {slice.first, mine, 1, 0, 0};
  }
  slice.blocks = behind / slice.cycle;
  const MPI_Aint left = behind % slice.cycle;
  if (left >= slice.block) {
    ++slice.blocks;
  } else {
    slice.rest = left;
  }
  return slice;
}

// The coordinates of `rank` in the process grid, row-major whatever the order of the array is.
std::vector<int> Coordinates(int rank, std::span<const int> grid) {
  std::vector<int> coordinates(grid.size());
  for (size_t i = grid.size(); i-- > 0;) {
    coordinates[i] = rank % grid[i];
    rank /= grid[i];
  }
  return coordinates;
}

}  // namespace

Ref<Datatype> MakeSubarray(std::span<const MPI_Aint> sizes, std::span<const MPI_Aint> subsizes, std::span<const MPI_Aint> starts,
                           int order, const Datatype& old) {
  MPI_Aint whole;
  if (!ExtentOfArray(sizes, old.extent, &whole)) return nullptr;
  Ref<Datatype> part = MakeDuplicate(old);
  MPI_Aint stride = old.extent;
  MPI_Aint start = 0;
  for (size_t step = 0; step < sizes.size(); ++step) {
    const size_t dimension = Dimension(order, step, sizes.size());
    part = MakeVector(subsizes[dimension], 1, stride, *part);
    if (!part) return nullptr;
    start += starts[dimension] * stride;
    stride *= sizes[dimension];
  }
  part = MakeIndexedBlock(1, {&start, 1}, *part);
  return part ? MakeResized(*part, 0, whole) : nullptr;
}

Ref<Datatype> MakeDarray(const Distribution& distribution, const Datatype& old) {
  MPI_Aint whole;
  if (!ExtentOfArray(distribution.sizes, old.extent, &whole)) return nullptr;
  const std::vector<int> coordinates = Coordinates(distribution.rank, distribution.grid);
  Ref<Datatype> part = MakeDuplicate(old);
  MPI_Aint stride = old.extent;
  for (size_t step = 0; step < distribution.sizes.size(); ++step) {
    const size_t i = Dimension(distribution.order, step, distribution.sizes.size());
    const Slice slice = SliceOf(distribution.sizes[i], distribution.kinds[i], distribution.arguments[i], distribution.grid[i],
                                coordinates[i]);
    const Ref<Datatype> block = MakeVector(slice.block, 1, stride, *part);
    const Ref<Datatype> rest = MakeVector(slice.rest, 1, stride, *part);
    if (!block || !rest) return nullptr;
    TypeBuilder builder;
    builder.Add(*block, slice.first * stride, slice.blocks, slice.cycle * stride);
    builder.Add(*rest, (slice.first + slice.blocks * slice.cycle) * stride, 1);
    part = builder.Finish();
    if (!part) return nullptr;
    stride *= distribution.sizes[i];
  }
  return MakeResized(*part, 0, whole);
}

}  // namespace weft::mpi
