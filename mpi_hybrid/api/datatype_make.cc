#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/type_arguments.h"
#include "mpi_hybrid/datatype/constructors.h"

// Constructors of datatypes (MPI 4.0 section 5.1). The bodies are templates over the integer that counts come in: int, or
// MPI_Count for the large-count forms.
namespace weft::mpi {
namespace {

// What MPI_Type_get_contents will return. Large-count constructors keep counts and displacements as large counts, the others as
// integers and addresses.
template <typename N>
class ContentsWriter {
 public:
  explicit ContentsWriter(int combiner) { contents_.combiner = combiner; }

  void Integer(int value) { contents_.integers.push_back(value); }
  void Count(N value) {
    if constexpr (kLarge<N>) {
      contents_.counts.push_back(value);
    } else {
      contents_.integers.push_back(value);
    }
  }
  void Counts(const N* values, size_t n) { std::for_each(values, values + n, [this](N value) { Count(value); }); }
  void Address(MPI_Aint value) { (kLarge<N> ? contents_.counts : contents_.addresses).push_back(value); }
  void Type(const Datatype& type) { contents_.types.emplace_back(&type); }

  // Gives the new type its contents and its handle.
  Error Finish(Ref<Datatype> made, MPI_Datatype* handle) {
    if (!made) return Error(MPI_ERR_COUNT, "size or extent of the new datatype are more than an MPI_Aint can hold");
    made->contents = std::move(contents_);
    made->big = kLarge<N>;
    *handle = Datatype::Give(*made);
    return {};
  }

 private:
  TypeContents contents_;
};

Error TooFar() { return Error(MPI_ERR_ARG, "a displacement of the new datatype is more bytes than an MPI_Aint can hold"); }

template <typename N>
Error Contiguous(N count, MPI_Datatype old_handle, MPI_Datatype* made) {
  const Datatype* old;
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindType(old_handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  ContentsWriter<N> contents(MPI_COMBINER_CONTIGUOUS);
  contents.Count(count);
  contents.Type(*old);
  return contents.Finish(MakeContiguous(count, *old), made);
}

// `stride` as the program gave it, which is in elements unless the combiner is MPI_COMBINER_HVECTOR.
template <typename N, typename Stride>
Error Vector(int combiner, N count, N block_length, Stride stride, MPI_Datatype old_handle, MPI_Datatype* made) {
  const Datatype* old;
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(CheckNotNegative(block_length, "blocklength"));
  WEFT_MPI_TRY(FindType(old_handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  ContentsWriter<N> contents(combiner);
  contents.Count(count);
  contents.Count(block_length);
  MPI_Aint bytes = stride;
  if (combiner == MPI_COMBINER_HVECTOR) {
    contents.Address(stride);
  } else {
    contents.Count(static_cast<N>(stride));
    if (__builtin_mul_overflow(static_cast<MPI_Aint>(stride), old->extent, &bytes)) return TooFar();
  }
  contents.Type(*old);
  return contents.Finish(MakeVector(count, block_length, bytes, *old), made);
}

// Displacements in bytes.
template <typename D>
Error InBytes(const D* displacements, size_t count, MPI_Aint unit, std::vector<MPI_Aint>* bytes) {
  bytes->resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (__builtin_mul_overflow(static_cast<MPI_Aint>(displacements[i]), unit, &(*bytes)[i])) return TooFar();
  }
  return {};
}

template <typename N, typename D>
void WriteDisplacements(const D* displacements, size_t count, bool in_elements, ContentsWriter<N>& contents) {
  for (size_t i = 0; i < count; ++i) {
    if (in_elements) {
      contents.Count(static_cast<N>(displacements[i]));
    } else {
      contents.Address(displacements[i]);
    }
  }
}

template <typename N, typename D>
Error Indexed(int combiner, N count, const N* block_lengths, const D* displacements, MPI_Datatype old_handle,
              MPI_Datatype* made) {
  const Datatype* old;
  std::vector<MPI_Aint> lengths, bytes;
  WEFT_MPI_TRY(CheckArray(count, displacements, "array_of_displacements"));
  WEFT_MPI_TRY(CheckCounts(count, block_lengths, "array_of_blocklengths", &lengths));
  WEFT_MPI_TRY(FindType(old_handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  const bool in_elements = combiner == MPI_COMBINER_INDEXED;
  WEFT_MPI_TRY(InBytes(displacements, lengths.size(), in_elements ? old->extent : 1, &bytes));
  ContentsWriter<N> contents(combiner);
  contents.Count(count);
  contents.Counts(block_lengths, lengths.size());
  WriteDisplacements(displacements, lengths.size(), in_elements, contents);
  contents.Type(*old);
  return contents.Finish(MakeIndexed(lengths, bytes, *old), made);
}

template <typename N, typename D>
Error IndexedBlock(int combiner, N count, N block_length, const D* displacements, MPI_Datatype old_handle, MPI_Datatype* made) {
  const Datatype* old;
  std::vector<MPI_Aint> bytes;
  WEFT_MPI_TRY(CheckArray(count, displacements, "array_of_displacements"));
  WEFT_MPI_TRY(CheckNotNegative(block_length, "blocklength"));
  WEFT_MPI_TRY(FindType(old_handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  const bool in_elements = combiner == MPI_COMBINER_INDEXED_BLOCK;
  const size_t blocks = static_cast<size_t>(count);
  WEFT_MPI_TRY(InBytes(displacements, blocks, in_elements ? old->extent : 1, &bytes));
  ContentsWriter<N> contents(combiner);
  contents.Count(count);
  contents.Count(block_length);
  WriteDisplacements(displacements, blocks, in_elements, contents);
  contents.Type(*old);
  return contents.Finish(MakeIndexedBlock(block_length, bytes, *old), made);
}

template <typename N>
Error Struct(N count, const N* block_lengths, const MPI_Aint* displacements, const MPI_Datatype* types, MPI_Datatype* made) {
  std::vector<MPI_Aint> lengths;
  WEFT_MPI_TRY(CheckArray(count, displacements, "array_of_displacements"));
  WEFT_MPI_TRY(CheckArray(count, types, "array_of_types"));
  WEFT_MPI_TRY(CheckCounts(count, block_lengths, "array_of_blocklengths", &lengths));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  ContentsWriter<N> contents(MPI_COMBINER_STRUCT);
  contents.Count(count);
  contents.Counts(block_lengths, lengths.size());
  WriteDisplacements(displacements, lengths.size(), false, contents);
  std::vector<Ref<const Datatype>> olds;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Datatype* old = Datatype::FindWithMarkers(types[i]);  // MPI_LB and MPI_UB of MPI-1, which MPICH takes here
    if (old == nullptr)
      return Error(MPI_ERR_TYPE, "array_of_types[" + std::to_string(i) + "]: " + FindType(types[i], &old).message());
    olds.emplace_back(old);
    contents.Type(*old);
  }
  return contents.Finish(MakeStruct(lengths, {displacements, lengths.size()}, olds), made);
}

template <typename N>
Error Resized(MPI_Datatype old_handle, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* made) {
  const Datatype* old;
  WEFT_MPI_TRY(FindType(old_handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  ContentsWriter<N> contents(MPI_COMBINER_RESIZED);
  contents.Address(lb);
  contents.Address(extent);
  contents.Type(*old);
  return contents.Finish(MakeResized(*old, lb, extent), made);
}

Error CheckOrder(int order) {
  if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN) return {};
  return Error(MPI_ERR_ARG, "order is " + std::to_string(order) + ", neither MPI_ORDER_C nor MPI_ORDER_FORTRAN");
}

Error CheckDimensions(int dimensions) {
  if (dimensions >= 1) return {};
  return Error(MPI_ERR_ARG, "ndims is " + std::to_string(dimensions) + ", less than 1");
}

Error OutOfArray(const char* what, int dimension, MPI_Aint value, MPI_Aint low, MPI_Aint high) {
  return Error(MPI_ERR_ARG, std::string(what) + "[" + std::to_string(dimension) + "] is " + std::to_string(value) + ", not in " +
                                std::to_string(low) + " ... " + std::to_string(high));
}

template <typename N>
Error CheckSubarray(int dimensions, const N* sizes, const N* subsizes, const N* starts) {
  WEFT_MPI_TRY(CheckDimensions(dimensions));
  WEFT_MPI_TRY(CheckNotNull(sizes, "array_of_sizes"));
  WEFT_MPI_TRY(CheckNotNull(subsizes, "array_of_subsizes"));
  WEFT_MPI_TRY(CheckNotNull(starts, "array_of_starts"));
  for (int i = 0; i < dimensions; ++i) {
    if (sizes[i] < 1) return OutOfArray("array_of_sizes", i, sizes[i], 1, std::numeric_limits<N>::max());
    if (subsizes[i] < 1 || subsizes[i] > sizes[i]) return OutOfArray("array_of_subsizes", i, subsizes[i], 1, sizes[i]);
    if (starts[i] < 0 || starts[i] > sizes[i] - subsizes[i]) {
      return OutOfArray("array_of_starts", i, starts[i], 0, sizes[i] - subsizes[i]);
    }
  }
  return {};
}

template <typename N>
Error Subarray(int dimensions, const N* sizes, const N* subsizes, const N* starts, int order, MPI_Datatype old_handle,
               MPI_Datatype* made) {
  const Datatype* old;
  WEFT_MPI_TRY(CheckSubarray(dimensions, sizes, subsizes, starts));
  WEFT_MPI_TRY(CheckOrder(order));
  WEFT_MPI_TRY(FindType(old_handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  const size_t n = static_cast<size_t>(dimensions);
  ContentsWriter<N> contents(MPI_COMBINER_SUBARRAY);
  contents.Integer(dimensions);
  contents.Counts(sizes, n);
  contents.Counts(subsizes, n);
  contents.Counts(starts, n);
  contents.Integer(order);
  contents.Type(*old);
  const std::vector<MPI_Aint> wide_sizes(sizes, sizes + n), wide_subsizes(subsizes, subsizes + n),
      wide_starts(starts, starts + n);
  return contents.Finish(MakeSubarray(wide_sizes, wide_subsizes, wide_starts, order, *old), made);
}

Error CheckDistribution(const Distribution& d, int i) {
  const size_t at = static_cast<size_t>(i);
  const MPI_Aint size = d.sizes[at];
  const int kind = d.kinds[at], argument = d.arguments[at], grid = d.grid[at];
  if (size < 1) return OutOfArray("array_of_gsizes", i, size, 1, std::numeric_limits<MPI_Aint>::max());
  if (grid < 1) return OutOfArray("array_of_psizes", i, grid, 1, d.processes);
  if (kind == MPI_DISTRIBUTE_NONE) {
    return grid == 1 ? Error() : OutOfArray("array_of_psizes of an undistributed dimension: ", i, grid, 1, 1);
  }
  if (kind != MPI_DISTRIBUTE_BLOCK && kind != MPI_DISTRIBUTE_CYCLIC) {
    return Error(MPI_ERR_ARG, "array_of_distribs[" + std::to_string(i) + "] is " + std::to_string(kind) + ", no distribution");
  }
  if (argument == MPI_DISTRIBUTE_DFLT_DARG) return {};
  if (argument < 1) return OutOfArray("array_of_dargs", i, argument, 1, size);
  if (kind == MPI_DISTRIBUTE_BLOCK && static_cast<MPI_Aint>(argument) * grid < size) {
    return OutOfArray("array_of_dargs", i, argument, (size + grid - 1) / grid, size);
  }
  return {};
}

Error CheckDistributions(const Distribution& d, int dimensions) {
  MPI_Aint grid = 1;
  for (int i = 0; i < dimensions; ++i) {
    WEFT_MPI_TRY(CheckDistribution(d, i));
    if (__builtin_mul_overflow(grid, d.grid[static_cast<size_t>(i)], &grid)) grid = -1;
  }
  if (grid == d.processes) return {};
  return Error(MPI_ERR_ARG, "the process grid of array_of_psizes has " + std::to_string(grid) + " places, size is " +
                                std::to_string(d.processes));
}

template <typename N>
Error Darray(int processes, int rank, int dimensions, const N* sizes, const int* kinds, const int* arguments, const int* grid,
             int order, MPI_Datatype old_handle, MPI_Datatype* made) {
  const Datatype* old;
  WEFT_MPI_TRY(CheckDimensions(dimensions));
  if (processes < 1) return Error(MPI_ERR_ARG, "size is " + std::to_string(processes) + ", less than 1");
  if (rank < 0 || rank >= processes) {
    return Error(MPI_ERR_RANK, "rank is " + std::to_string(rank) + ", size is " + std::to_string(processes));
  }
  WEFT_MPI_TRY(CheckNotNull(sizes, "array_of_gsizes"));
  WEFT_MPI_TRY(CheckNotNull(kinds, "array_of_distribs"));
  WEFT_MPI_TRY(CheckNotNull(arguments, "array_of_dargs"));
  WEFT_MPI_TRY(CheckNotNull(grid, "array_of_psizes"));
  WEFT_MPI_TRY(CheckOrder(order));
  WEFT_MPI_TRY(FindType(old_handle, &old));
  WEFT_MPI_TRY(CheckNotNull(made, "newtype"));
  const size_t n = static_cast<size_t>(dimensions);
  const std::vector<MPI_Aint> wide_sizes(sizes, sizes + n);
  const Distribution distribution{processes, rank, wide_sizes, {kinds, n}, {arguments, n}, {grid, n}, order};
  WEFT_MPI_TRY(CheckDistributions(distribution, dimensions));
  ContentsWriter<N> contents(MPI_COMBINER_DARRAY);
  for (const int value : {processes, rank, dimensions}) contents.Integer(value);
  contents.Counts(sizes, n);
  for (const int* list : {kinds, arguments, grid}) {
    for (size_t i = 0; i < n; ++i) contents.Integer(list[i]);
  }
  contents.Integer(order);
  contents.Type(*old);
  return contents.Finish(MakeDarray(distribution, *old), made);
}

// Fortran types by precision and range.
Error Unnamed(Datatype* found, const std::string& what, MPI_Datatype* handle) {
  WEFT_MPI_TRY(CheckNotNull(handle, "newtype"));
  if (found == nullptr) return Error(MPI_ERR_OTHER, "there is no Fortran type with " + what);
  *handle = found->handle;
  return {};
}

std::string PrecisionAndRange(int precision, int range) {
  return "p = " + std::to_string(precision) + ", r = " + std::to_string(range);
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_BOTH(Type_contiguous, (Count count, MPI_Datatype oldtype, MPI_Datatype* newtype),
              Anywhere(name, [&] { return Contiguous(count, oldtype, newtype); }))

WEFT_MPI_BOTH(Type_vector, (Count count, Count blocklength, Count stride, MPI_Datatype oldtype, MPI_Datatype* newtype),
              Anywhere(name, [&] { return Vector(MPI_COMBINER_VECTOR, count, blocklength, stride, oldtype, newtype); }))

WEFT_MPI_BOTH(Type_create_hvector,
              (Count count, Count blocklength, MPI_Count stride, MPI_Datatype oldtype, MPI_Datatype* newtype),
              Anywhere(name,
                       [&] { return Vector(MPI_COMBINER_HVECTOR, count, blocklength, stride, oldtype, newtype); }))

int PMPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_hvector", [&] { return Vector(MPI_COMBINER_HVECTOR, count, blocklength, stride, oldtype, newtype); });
}
WEFT_MPI_ALIAS(Type_hvector)

WEFT_MPI_BOTH(Type_indexed,
              (Count count, const Count array_of_blocklengths[], const Count array_of_displacements[],
               MPI_Datatype oldtype, MPI_Datatype* newtype),
              Anywhere(name, [&] {
                return Indexed(MPI_COMBINER_INDEXED, count, array_of_blocklengths, array_of_displacements, oldtype,
                               newtype);
              }))

WEFT_MPI_BOTH(Type_create_hindexed,
              (Count count, const Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
               MPI_Datatype oldtype, MPI_Datatype* newtype),
              Anywhere(name, [&] {
                return Indexed(MPI_COMBINER_HINDEXED, count, array_of_blocklengths, array_of_displacements, oldtype,
                               newtype);
              }))

int PMPI_Type_hindexed(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                       MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_hindexed", [&] {
    return Indexed<int, MPI_Aint>(MPI_COMBINER_HINDEXED, count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
  });
}
WEFT_MPI_ALIAS(Type_hindexed)

WEFT_MPI_BOTH(Type_create_indexed_block,
              (Count count, Count blocklength, const Count array_of_displacements[], MPI_Datatype oldtype,
               MPI_Datatype* newtype),
              Anywhere(name, [&] {
                return IndexedBlock(MPI_COMBINER_INDEXED_BLOCK, count, blocklength, array_of_displacements, oldtype,
                                    newtype);
              }))

WEFT_MPI_BOTH(Type_create_hindexed_block,
              (Count count, Count blocklength, const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
               MPI_Datatype* newtype),
              Anywhere(name, [&] {
                return IndexedBlock(MPI_COMBINER_HINDEXED_BLOCK, count, blocklength, array_of_displacements, oldtype,
                                    newtype);
              }))

WEFT_MPI_BOTH(Type_create_struct,
              (Count count, const Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
               const MPI_Datatype array_of_types[], MPI_Datatype* newtype),
              Anywhere(name, [&] {
                return Struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
              }))

int PMPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype array_of_types[],
                     MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_struct",
                  [&] { return Struct<int>(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype); });
}
WEFT_MPI_ALIAS(Type_struct)

int PMPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_create_resized", [&] { return Resized<int>(oldtype, lb, extent, newtype); });
}
WEFT_MPI_ALIAS(Type_create_resized)
int PMPI_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_create_resized_c", [&] { return Resized<MPI_Count>(oldtype, lb, extent, newtype); });
}
WEFT_MPI_ALIAS(Type_create_resized_c)

WEFT_MPI_BOTH(Type_create_subarray,
              (int ndims, const Count array_of_sizes[], const Count array_of_subsizes[], const Count array_of_starts[],
               int order, MPI_Datatype oldtype, MPI_Datatype* newtype),
              Anywhere(name, [&] {
                return Subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype, newtype);
              }))

WEFT_MPI_BOTH(Type_create_darray,
              (int size, int rank, int ndims, const Count array_of_gsizes[], const int array_of_distribs[],
               const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
               MPI_Datatype* newtype),
              Anywhere(name, [&] {
                return Darray(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes,
                              order, oldtype, newtype);
              }))

int PMPI_Type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_create_f90_real", [&] { return Unnamed(F90Real(p, r), PrecisionAndRange(p, r), newtype); });
}
WEFT_MPI_ALIAS(Type_create_f90_real)
int PMPI_Type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_create_f90_complex", [&] { return Unnamed(F90Complex(p, r), PrecisionAndRange(p, r), newtype); });
}
WEFT_MPI_ALIAS(Type_create_f90_complex)
int PMPI_Type_create_f90_integer(int r, MPI_Datatype* newtype) {
  return Anywhere("MPI_Type_create_f90_integer", [&] { return Unnamed(F90Integer(r), "r = " + std::to_string(r), newtype); });
}
WEFT_MPI_ALIAS(Type_create_f90_integer)
