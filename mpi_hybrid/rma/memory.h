#ifndef MPI_HYBRID_RMA_MEMORY_H_
#define MPI_HYBRID_RMA_MEMORY_H_

#include <cstddef>

namespace weft::mpi {

// MPI_Alloc_mem and MPI_Free_mem. Call with the library's lock held. If other ranks are on this host, they can map this
// memory, so that windows over it are reached like those of MPI_Win_allocate. Neither function is collective.

// Allocates `bytes` at a multiple of `alignment`, a power of two of at least 64. Null: not available.
void* AllocateMemory(size_t bytes, size_t alignment);
// Frees what AllocateMemory returned. Null is allowed.
void FreeMemory(void* memory);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_RMA_MEMORY_H_
