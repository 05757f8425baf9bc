#ifndef MPI_HYBRID_DATATYPE_PREDEFINED_H_
#define MPI_HYBRID_DATATYPE_PREDEFINED_H_

#include <mpi.h>

#include <cstdint>
#include <span>

// The predefined datatypes (MPI 4.0 annex A.1.1) as they are on x86-64 with gcc and gfortran.
namespace weft::mpi {

// The kind of data in a basic element. These are also the groups of MPI 4.0 section 6.9.2.
enum class BasicKind : uint8_t {
  kMarker,      // MPI_LB, MPI_UB: no data
  kByte,        // MPI_BYTE, MPI_PACKED: never converted
  kSigned,      // two's complement; C, Fortran and address-sized integers, characters
  kUnsigned,
  kWide,        // wchar_t
  kLogical,     // zero or not zero: C and C++ bool, Fortran LOGICAL
  kFloat,       // IEEE formats, and x87's 80 bits
  kComplex,     // two of them
  kPair,        // a value and an index, for MPI_MINLOC and MPI_MAXLOC
};

// Integers, logical types and bytes. The result of an operation on them does not depend on the order of the operands,
// to the last bit.
constexpr bool IsIntegral(BasicKind kind) {
  return kind == BasicKind::kByte || kind == BasicKind::kSigned || kind == BasicKind::kUnsigned || kind == BasicKind::kWide ||
         kind == BasicKind::kLogical;
}

struct Basic {
  MPI_Datatype handle;
  const char* name;
  BasicKind kind;
  uint8_t size;       // bytes of data
  uint8_t extent;
  uint8_t alignment;
  uint8_t external;   // bytes in external32; 0: not representable there
  MPI_Datatype first = MPI_DATATYPE_NULL, second = MPI_DATATYPE_NULL;  // pairs: their parts
  uint8_t second_offset = 0;                                          // pairs: offset of the second part in memory
};

// Null when `handle` is no predefined type.
const Basic* FindBasic(MPI_Datatype handle);
std::span<const Basic> AllBasics();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_PREDEFINED_H_
