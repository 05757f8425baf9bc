#ifndef MPI_HYBRID_IO_SHARED_POINTER_H_
#define MPI_HYBRID_IO_SHARED_POINTER_H_

#include <cstdint>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/rma/window.h"

namespace weft::mpi::io {

// The file pointer that all ranks of a file have in common, in etypes: a number in rank 0's part of a window, which the others reach by
// atomic operations while rank 0 does something else. No file is locked for it, so it works on any file system. With the library's lock.
class SharedPointer {
 public:
  // Collective.
  Error Make(Comm& comm);
  Error Drop(bool broken);  // not all are here (Break, agreement.h)

  // Moves on by `etypes`; where it was.
  Error Advance(int64_t etypes, int64_t* before);
  Error Get(int64_t* value) { return Advance(0, value); }
  // Not collective; what others do at the same time comes before or after.
  Error Set(int64_t value);

 private:
  Error Apply(MPI_Op op, int64_t operand, int64_t* before);

  Ref<Window> window_;  // null where there is one rank
  int64_t alone_ = 0;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_SHARED_POINTER_H_
