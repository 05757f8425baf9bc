#ifndef MPI_HYBRID_RMA_PROCESS_COPY_H_
#define MPI_HYBRID_RMA_PROCESS_COPY_H_

#include <cstddef>
#include <cstdint>

#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/host/process_memory.h"
#include "mpi_hybrid/rma/blocks.h"

namespace weft::mpi::rma {

using host::Direction;
using host::ProcessMemory;

// Data in the private memory of another process, which the kernel copies. All functions return what ProcessMemory's
// do.

// Copies `bytes` bytes of data between this process and that one, at the cursors. Addresses of `there` are those of
// that process.
int CopyWithProcess(Direction direction, ProcessMemory& process, TypeCursor& here, TypeCursor& there, size_t bytes);

// The same if this process's side has many small pieces: the kernel then sees only the pieces of the other side.
int CopyThroughBuffer(Direction direction, ProcessMemory& process, TypeCursor& here, TypeCursor& there, size_t bytes);

// Writes packed data to blocks of that process's memory. Their offsets are its addresses.
int WriteBlocks(ProcessMemory& process, const BlockSource::Part& part, const uint8_t* given);

// An accumulate on blocks of that process's memory, whose offsets are its addresses. It reads, computes and writes
// while no other process accumulates there. `given` and `fetched` are packed; each may be null.
int AccumulateInProcess(ProcessMemory& process, const AccumulateGuard& guard, MPI_Op op, const ElementType& type,
                        const BlockSource::Part& part, const uint8_t* given, uint8_t* fetched);
int CompareAndSwapInProcess(ProcessMemory& process, const AccumulateGuard& guard, const ElementType& type, const uint8_t* compare,
                            const uint8_t* given, uint64_t address, uint8_t* fetched);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_PROCESS_COPY_H_
