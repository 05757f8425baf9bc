#ifndef MPI_HYBRID_API_TYPE_ARGUMENTS_H_
#define MPI_HYBRID_API_TYPE_ARGUMENTS_H_

#include <mpi.h>

#include <climits>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "mpi_hybrid/api/entry.h"

// Arguments of the functions on datatypes. N is int, or MPI_Count in the large-count forms.
namespace weft::mpi {

template <typename N>
constexpr bool kLarge = !std::is_same_v<N, int>;

inline Error CheckNotNegative(MPI_Count value, const char* name) {
  if (value >= 0) [[likely]] return {};
  return Error(MPI_ERR_COUNT, std::string(name) + " is negative (" + std::to_string(value) + ")");
}

// An array of `count` elements; it may be null if count is 0.
inline Error CheckArray(MPI_Count count, const void* array, const char* name) {
  WEFT_MPI_TRY(CheckCount(count));
  return count > 0 ? CheckNotNull(array, name) : Error();
}

// An array of counts.
template <typename N>
Error CheckCounts(MPI_Count count, const N* values, const char* name, std::vector<MPI_Aint>* wide) {
  WEFT_MPI_TRY(CheckArray(count, values, name));
  for (MPI_Count i = 0; i < count; ++i) {
    if (values[i] < 0) {
      return Error(MPI_ERR_COUNT,
                   std::string(name) + "[" + std::to_string(i) + "] is negative (" + std::to_string(values[i]) + ")");
    }
  }
  wide->assign(values, values + count);
  return {};
}

// Stores the result of a query in an N: MPI_UNDEFINED if the value does not fit (MPI 4.0 section 5.1.5).
template <typename N>
void Express(MPI_Count value, N* out) {
  *out = value > std::numeric_limits<N>::max() || value < std::numeric_limits<N>::min() ? static_cast<N>(MPI_UNDEFINED)
                                                                                        : static_cast<N>(value);
}

// Finds a datatype, including MPI_LB and MPI_UB of MPI-1. These have sizes, bounds, names and attributes, but contain
// no data.
inline Error FindAnyType(MPI_Datatype handle, Datatype** type) {
  *type = Datatype::FindWithMarkers(handle);
  const Datatype* none;
  return *type != nullptr ? Error() : FindType(handle, &none);
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_TYPE_ARGUMENTS_H_
