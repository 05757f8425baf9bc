#ifndef MPI_HYBRID_API_COLLECTIVE_ARGUMENTS_H_
#define MPI_HYBRID_API_COLLECTIVE_ARGUMENTS_H_

#include <mpi.h>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/coll/collectives.h"

// Checks of the arguments of collectives, and their conversion to the arguments of coll/. Errors name the argument
// (`side` is "send" or "recv") and its value.
namespace weft::mpi {

// An argument that is an array of counts or displacements, in either binding.
struct IntArray {
  IntArray(const int* values) : ints(values) {}        // NOLINT: implicit
  IntArray(const MPI_Aint* values) : longs(values) {}  // NOLINT; MPI_Count is the same type
  bool null() const { return ints == nullptr && longs == nullptr; }
  MPI_Aint operator[](size_t i) const { return ints != nullptr ? ints[i] : longs[i]; }

  const int* ints = nullptr;
  const MPI_Aint* longs = nullptr;
};

// One side of a collective as the program passed it. One: the same amount at each rank. Each: an amount per rank (v
// forms). Typed: an amount and a type per rank, with displacements in bytes (w forms).
struct One {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};
struct Each {
  const void* buffer;
  IntArray counts, displacements;
  MPI_Datatype type;
};
struct Typed {
  const void* buffer;
  IntArray counts, displacements;
  const MPI_Datatype* types;
};

// An array of `n` elements, without an allocation while it is short.
template <typename T>
class ShortArray {
 public:
  explicit ShortArray(size_t n) : size_(n) {
    if (n > kInline) large_.resize(n);
  }
  T* data() { return size_ > kInline ? large_.data() : small_.data(); }
  T& operator[](size_t i) { return data()[i]; }
  std::span<const T> span() { return {data(), size_}; }

 private:
  static constexpr size_t kInline = 32;
  size_t size_;
  std::array<T, kInline> small_;
  std::vector<T> large_;
};

// The argument of coll/ for One.
class UniformArgument {
 public:
  explicit UniformArgument(size_t /*n*/ = 0) {}

  Error Set(const char* side, const One& given);
  // MPI_IN_PLACE, or a buffer that is not used at this rank.
  void SetBuffer(const void* buffer) { uniform_.buffer = buffer; }

  const Uniform& get() const { return uniform_; }
  bool empty() const { return uniform_.count * uniform_.type->size == 0; }  // no data
  // The address of block `index`; null stays null.
  const void* block(int index) const;

 private:
  Uniform uniform_;
};

// The argument of coll/ for Each and Typed, or for One where coll/ takes Varying. Contains the storage for `n` blocks.
class VaryingArgument {
 public:
  explicit VaryingArgument(size_t n) : n_(n), counts_(n), displacements_(n), types_(n) {}

  Error Set(const char* side, const One& given);
  Error Set(const char* side, const Each& given);
  Error Set(const char* side, const Typed& given);
  void SetBuffer(const void* buffer) { varying_.buffer = buffer; }

  const Varying& get() const { return varying_; }
  bool empty();
  const void* block(int index) const;  // not for Typed

 private:
  Error SetCounts(const char* side, IntArray counts, IntArray displacements);
  void Use(const void* buffer);

  size_t n_;
  ShortArray<MPI_Aint> counts_, displacements_;
  ShortArray<const Datatype*> types_;
  Varying varying_;
};

template <typename Given>
using ArgumentOf = std::conditional_t<std::is_same_v<Given, One>, UniformArgument, VaryingArgument>;

// MPI_ERR_BUFFER: `argument` must not be MPI_IN_PLACE here, or is the same as the other buffer.
Error CheckNotInPlace(const char* argument, const void* buffer, const char* where);
Error CheckDistinct(const void* sendbuf, const void* recvbuf, bool empty);
// Checks a send buffer that may be MPI_IN_PLACE, but not on an intercommunicator.
Error CheckInPlace(const Comm& comm, const char* argument, const void* buffer);
// Accepts MPI_INFO_NULL or an info object. These functions know no hints.
Error CheckInfo(MPI_Info info);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_COLLECTIVE_ARGUMENTS_H_
