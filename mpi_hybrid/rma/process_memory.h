#ifndef MPI_HYBRID_RMA_PROCESS_MEMORY_H_
#define MPI_HYBRID_RMA_PROCESS_MEMORY_H_

#include <sys/types.h>

#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/rma/blocks.h"

namespace weft::mpi::rma {

// Private memory of another process of this host, which the kernel copies from or to in one go, where it allows that: the
// same user, and no Yama, container or namespace in between. All return 0 or an errno: ESRCH, the process is gone;
// EFAULT, memory of either side is not mapped; EPERM. An error may come after a part of the bytes was moved.
int ReadProcess(pid_t pid, uint64_t from, void* to, size_t bytes);
int WriteProcess(pid_t pid, const void* from, uint64_t to, size_t bytes);

// `bytes` of data between memory of this process and of that one, where the cursors are; addresses of `there` are that
// process's.
enum class Direction : uint8_t { kToProcess, kFromProcess };
int CopyWithProcess(Direction direction, pid_t pid, TypeCursor& here, TypeCursor& there, size_t bytes);

// An accumulate on blocks of that process's memory, whose offsets are its addresses, by reading, working and writing
// with the guard's lock held. `given` and `fetched` are packed; each may be null.
int AccumulateInProcess(pid_t pid, const AccumulateGuard& guard, MPI_Op op, const ElementType& type,
                        const BlockSource::Part& part, const uint8_t* given, uint8_t* fetched);
int CompareAndSwapInProcess(pid_t pid, const AccumulateGuard& guard, const ElementType& type, const uint8_t* compare,
                            const uint8_t* given, uint64_t address, uint8_t* fetched);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_PROCESS_MEMORY_H_
