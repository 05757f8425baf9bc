#ifndef MPI_HYBRID_IO_SPLIT_H_
#define MPI_HYBRID_IO_SPLIT_H_

#include "mpi_hybrid/io/operations.h"

namespace weft::mpi::io {

// Split collective calls (MPI 4.0 section 14.4.5). A file has at most one at a time. Call with the library's lock held.
Error BeginSplit(File& file, Access::Direction direction, const Place& place, const Data& data, const Error& refusal);
// `kind` and `direction` must match the call that began. Waits for it. `*moved`: bytes of data.
Error EndSplit(File& file, Access::Direction direction, Place::Kind kind, MPI_Count* moved);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_SPLIT_H_
