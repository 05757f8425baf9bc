#ifndef MPI_HYBRID_IO_FILE_TYPE_H_
#define MPI_HYBRID_IO_FILE_TYPE_H_

#include <mpi.h>

#include <functional>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi::io {

// Bytes that an element of a basic type takes in the file, in `*bytes`.
using BasicSize = std::function<Error(MPI_Datatype basic, MPI_Aint* bytes)>;

// The type that lays out the elements of `type` in a file where basic elements have other sizes: made anew as the program made it,
// so that extents and displacements which count elements scale with these, and those in bytes stay (MPI 4.0 section 14.5.1). Its basic
// elements are bytes. MPI_ERR_UNSUPPORTED_DATAREP: a basic type has no form there.
Error MakeFileType(const Datatype& type, const BasicSize& size_of, Ref<const Datatype>* made);

// What a layout must be to be a filetype (MPI 4.0 section 14.3). `tiled`: as one element follows another in a view.
struct LayoutOrder {
  bool monotonic = true;  // displacements do not decrease, nor are they negative
  bool disjoint = true;   // no byte is there twice
};
LayoutOrder OrderOf(const Datatype& type);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_FILE_TYPE_H_
