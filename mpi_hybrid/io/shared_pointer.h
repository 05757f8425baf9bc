#ifndef MPI_HYBRID_IO_SHARED_POINTER_H_
#define MPI_HYBRID_IO_SHARED_POINTER_H_

#include <cstdint>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/rma/window.h"

namespace weft::mpi::io {

// The file pointer shared by all ranks of a file, in etypes: a number in rank 0's part of a window. The other ranks
// access it by atomic operations, without help from rank 0's program. No file is locked for it, so that it works on
// every file system. Call with the library's lock held.
class SharedPointer {
 public:
  // Collective.
  Error Make(Comm& comm);
  Error Drop(bool broken);  // `broken`: not all ranks take part (Break, agreement.h)

  // Advances the pointer by `etypes` and stores its previous value in `*before`.
  Error Advance(int64_t etypes, int64_t* before);
  Error Get(int64_t* value) { return Advance(0, value); }
  // Not collective. Concurrent operations of other ranks come before or after it.
  Error Set(int64_t value);

 private:
  Error Apply(MPI_Op op, int64_t operand, int64_t* before);

  Ref<Window> window_;  // null if there is only one rank
  int64_t alone_ = 0;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_SHARED_POINTER_H_
