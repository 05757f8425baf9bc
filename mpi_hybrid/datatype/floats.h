#ifndef MPI_HYBRID_DATATYPE_FLOATS_H_
#define MPI_HYBRID_DATATYPE_FLOATS_H_

#include <cfloat>
#include <cstddef>

// The formats of IEEE 754 that have no name in C++20.
namespace weft::mpi {

// 16 bytes, binary128: MPI_REAL16. A type of its own on x86-64. On arm64 the compilers have no such type; there long
// double has this format.
#ifdef __SIZEOF_FLOAT128__
using Quad = __float128;
typedef __complex__ float ComplexQuad __attribute__((mode(TC)));
#else
using Quad = long double;
using ComplexQuad = __complex__ long double;
#endif
static_assert(sizeof(Quad) == 16 && sizeof(ComplexQuad) == 32);

// 2 bytes, binary16: MPIX_C_FLOAT16, if the compiler has it.
#ifdef __FLT16_MANT_DIG__
#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
typedef float Half __attribute__((mode(HF)));  // these compilers have the type, but no name for it in C++
#else
using Half = _Float16;
#endif
#endif

// The bytes of a long double that hold its value: ten of sixteen for x87, else all.
inline constexpr size_t kLongDoubleBytes = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_FLOATS_H_
