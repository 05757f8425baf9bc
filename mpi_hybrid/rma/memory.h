#ifndef MPI_HYBRID_RMA_MEMORY_H_
#define MPI_HYBRID_RMA_MEMORY_H_

#include <cstddef>

namespace weft::mpi {

// MPI_Alloc_mem and MPI_Free_mem, with the library's lock. Where other ranks are on this host the memory is such that they can map it, so that
// windows over it are reached as those of MPI_Win_allocate are. Neither is collective.

// `bytes` at a multiple of `alignment`, a power of two of at least 64. Null: there are none.
void* AllocateMemory(size_t bytes, size_t alignment);
// What AllocateMemory returned, or null.
void FreeMemory(void* memory);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_RMA_MEMORY_H_
