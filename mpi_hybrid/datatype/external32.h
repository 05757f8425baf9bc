#ifndef MPI_HYBRID_DATATYPE_EXTERNAL32_H_
#define MPI_HYBRID_DATATYPE_EXTERNAL32_H_

#include <mpi.h>

#include <cstdint>
#include <span>

#include "mpi_hybrid/datatype/datatype.h"

// The data representation "external32" (MPI 4.0 section 14.5.2): big-endian, IEEE formats, no padding.
namespace weft::mpi {

// The number of bytes that `count` elements take in external32.
MPI_Count ExternalSize(MPI_Count count, const Datatype& type);
// `out` and `in` have ExternalSize bytes. Integers that are shorter in external32 (MPI_LONG, MPI_WCHAR) lose their
// upper bytes.
void PackExternal(const void* buffer, MPI_Count count, const Datatype& type, uint8_t* out);
void UnpackExternal(const uint8_t* in, void* buffer, MPI_Count count, const Datatype& type);
// The same for only the first `in.size()` bytes, such as those of a file that ends early. Converts the complete basic
// elements. Returns the number of bytes of data stored in `buffer`.
MPI_Count UnpackExternalBytes(std::span<const uint8_t> in, void* buffer, MPI_Count count, const Datatype& type);

// The bytes of memory that elements of `type` with `external` bytes in external32 take; MPI_UNDEFINED: they end within a basic element.
MPI_Count MemorySizeOfExternal(MPI_Count external, const Datatype& type);

// Whether elements of `type` may have the same memory as data in external32: `buffer` may be `out` or `in` then. Each byte has its place in both, or another
// one of the same basic element.
bool FitsInPlace(const Datatype& type);
// Whether they are the same bytes in both.
bool IsSameInExternal(const Datatype& type);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_EXTERNAL32_H_
