#ifndef MPI_HYBRID_RMA_ELEMENT_ATOMICS_H_
#define MPI_HYBRID_RMA_ELEMENT_ATOMICS_H_

#include <mpi.h>

#include <cstdint>

#include "mpi_hybrid/rma/target_window.h"

namespace weft::mpi::rma {

// Accumulates by the processor's atomic operations, on memory that several processes map. Each process decides by type
// and address alone whether to use them. Therefore all come to the same decision and exclude each other.

// Whether elements of `type` at `memory` support this: 1, 2, 4 or 8 bytes, aligned to their size.
inline bool HasAtomics(const ElementType& type, const uint8_t* memory) {
  return type.first == 0 && type.extent == type.size && (type.size & (type.size - 1)) == 0 && type.size <= 8 &&
         (reinterpret_cast<uintptr_t>(memory) & (type.size - 1)) == 0;
}

// For each of `count` elements: memory = memory op given. The previous value goes to `fetched` unless that is null.
// `given` and `fetched` are packed and may have any alignment; `given` is not read for MPI_NO_OP. The operation must be
// defined for the type.
void AccumulateAtomically(MPI_Op op, const ElementType& type, const uint8_t* given, uint8_t* memory, uint32_t count,
                          uint8_t* fetched);
// MPI_Compare_and_swap on one element.
void CompareAndSwapAtomically(const ElementType& type, const uint8_t* compare, const uint8_t* given, uint8_t* memory,
                              uint8_t* fetched);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_ELEMENT_ATOMICS_H_
