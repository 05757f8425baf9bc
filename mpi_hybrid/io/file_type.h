#ifndef MPI_HYBRID_IO_FILE_TYPE_H_
#define MPI_HYBRID_IO_FILE_TYPE_H_

#include <mpi.h>

#include <functional>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/ref.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi::io {

// Stores the number of bytes that an element of a basic type takes in the file in `*bytes`.
using BasicSize = std::function<Error(MPI_Datatype basic, MPI_Aint* bytes)>;

// Makes the type that describes the layout of `type` in a file whose basic elements have other sizes. It repeats the
// constructor calls of the program: extents, and displacements in elements, scale with the sizes; displacements in
// bytes stay the same (MPI 4.0 section 14.5.1). Its basic elements are bytes. MPI_ERR_UNSUPPORTED_DATAREP: a basic type
// has no form in the file.
Error MakeFileType(const Datatype& type, const BasicSize& size_of, Ref<const Datatype>* made);

// The properties that a filetype needs (MPI 4.0 section 14.3). They hold for the sequence of elements that a view
// consists of.
struct LayoutOrder {
  bool monotonic = true;  // displacements are not negative and do not decrease
  bool disjoint = true;   // no byte occurs twice
};
LayoutOrder OrderOf(const Datatype& type);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_FILE_TYPE_H_
