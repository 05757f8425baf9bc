#ifndef MPI_HYBRID_API_COLLECTIVE_ARGUMENTS_H_
#define MPI_HYBRID_API_COLLECTIVE_ARGUMENTS_H_

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "mpi_hybrid/api/collective_calls.h"
#include "mpi_hybrid/coll/collectives.h"

// Checks of the arguments of collectives, and their translation to what coll/ takes. Errors name the argument (`side`
// is "send" or "recv") and its value.
namespace weft::mpi {

// An array of `n`, without an allocation while it is short.
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

// The storage of a Varying.
class VaryingArgument {
 public:
  explicit VaryingArgument(size_t n) : n_(n), counts_(n), displacements_(n), types_(n) {}

  // v forms.
  Error Set(const char* side, const void* buffer, IntArray counts, IntArray displacements, MPI_Datatype type);
  // w forms: displacements in bytes.
  Error SetTyped(const char* side, const void* buffer, IntArray counts, IntArray displacements,
                 const MPI_Datatype* types);
  // Equal blocks one after the other.
  void SetUniform(const Uniform& uniform);
  // MPI_IN_PLACE: the rest is not looked at.
  void SetInPlace() { varying_.buffer = MPI_IN_PLACE; }

  const Varying& get() const { return varying_; }
  bool empty();  // no data

 private:
  Error SetCounts(const char* side, IntArray counts, IntArray displacements);

  size_t n_;
  ShortArray<MPI_Aint> counts_, displacements_;
  ShortArray<const Datatype*> types_;
  Varying varying_;
};

Error MakeUniform(const char* side, const void* buffer, MPI_Count count, MPI_Datatype type, Uniform* uniform);

// MPI_ERR_BUFFER: `argument` may not be MPI_IN_PLACE here, or is the same as the other buffer.
Error CheckNotInPlace(const char* argument, const void* buffer, const char* where);
Error CheckDistinct(const void* sendbuf, const void* recvbuf, bool empty);
// A send buffer that may be MPI_IN_PLACE, but not on an intercommunicator.
Error CheckInPlace(const Comm& comm, const char* argument, const void* buffer);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_COLLECTIVE_ARGUMENTS_H_
