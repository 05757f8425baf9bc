#ifndef MPI_HYBRID_COLL_TESTING_TYPED_BUFFER_H_
#define MPI_HYBRID_COLL_TESTING_TYPED_BUFFER_H_

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {

// Elements of three ints in four layouts: dense, with gaps, with gaps between elements and a lower bound, displaced.
constexpr MPI_Aint kElementBytes = 12;

inline const Datatype& LayoutOfThree(size_t kind) {
  static const auto* const layouts = [] {
    const Datatype& number = *Datatype::Find(MPI_INT);
    auto* made = new std::array<Ref<Datatype>, 4>;
    (*made)[0] = MakeContiguous(3, number);
    (*made)[1] = MakeVector(3, 1, 8, number);
    (*made)[2] = MakeResized(*(*made)[0], -4, 20);
    const MPI_Aint lengths[] = {2, 1}, displacements[] = {4, 16};
    const Ref<const Datatype> types[] = {Ref<const Datatype>(&number), Ref<const Datatype>(&number)};
    (*made)[3] = MakeStruct(lengths, displacements, types);
    return made;
  }();
  return *(*layouts)[kind];
}

using Bytes = std::vector<uint8_t>;  // packed data

inline Bytes RandomBytes(std::mt19937& random, MPI_Aint elements) {
  Bytes bytes(static_cast<size_t>(elements * kElementBytes));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Memory for `elements` elements of a type, with a margin at both ends. Bytes that were never written have a known
// value.
class TypedBuffer {
 public:
  TypedBuffer(const Datatype& type, MPI_Aint elements)
      : type_(&type),
        memory_(static_cast<size_t>(2 * kMargin + (elements + 1) * (type.extent + type.true_extent)), kUntouched) {}

  const Datatype& type() const { return *type_; }
  void* origin() { return memory_.data() + kMargin; }
  void Clear() { std::fill(memory_.begin(), memory_.end(), kUntouched); }
  // Puts packed data at element `first`.
  void Put(MPI_Aint first, const Bytes& data) {
    TypeCursor cursor(static_cast<uint8_t*>(origin()) + first * type_->extent,
                      static_cast<MPI_Aint>(data.size()) / type_->size, *type_);
    Unpack(cursor, data);
  }
  bool operator==(const TypedBuffer& other) const { return memory_ == other.memory_; }

 private:
  static constexpr MPI_Aint kMargin = 64;
  static constexpr uint8_t kUntouched = 0xab;

  const Datatype* type_;
  std::vector<uint8_t> memory_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_TESTING_TYPED_BUFFER_H_
