#ifndef MPI_HYBRID_RMA_PROCESS_MEMORY_H_
#define MPI_HYBRID_RMA_PROCESS_MEMORY_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/address_space_mark.h"
#include "base/job_secret.h"
#include "base/memory_file.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/rma/blocks.h"

namespace weft::mpi::rma {

// Private memory of another process of this host, which the kernel copies if it permits that: the process has the same
// user, and no Yama, container or namespace prevents it. Small amounts are copied through a file of the kernel that is
// opened at its first use (MemoryFile). Neither way can reach a later process with the same pid, or a program that the
// process executes later: the file belongs to the address space, and each other copy begins with the process's mark
// (base/address_space_mark.h). All functions return 0 or an errno. ESRCH: the process is gone. EFAULT: memory of either
// side is not mapped. EPERM. A part of the bytes may have been moved before an error.
enum class Direction : uint8_t { kToProcess, kFromProcess };
class ProcessMemory {
 public:
  // The memory of the process `pid`, which has `nonce` at that address and has told `mark` as its AddressSpaceMark().
  // nullptr: the memory cannot be read, the nonce cannot be written (which is tried), or there is no mark.
  static std::unique_ptr<ProcessMemory> Of(pid_t pid, uint64_t mark, uint64_t nonce_address, const Nonce& nonce);

  int Read(uint64_t from, void* to, size_t bytes);
  int Write(const void* from, uint64_t to, size_t bytes);
  // Moves all of the pieces: at most 64, of at most 1 GiB in total. The two lists are consumed.
  int Move(Direction direction, iovec* here, iovec* there, size_t pieces, size_t bytes);

 private:
  ProcessMemory(pid_t pid, uint64_t mark, uint64_t nonce_address, const Nonce& nonce)
      : process_(pid, mark), nonce_address_(nonce_address), nonce_(nonce) {}
  const MemoryFile* File();
  int MoveByCall(Direction direction, iovec* here, iovec* there, size_t pieces, size_t bytes) const;

  const MarkedProcess process_;
  const uint64_t nonce_address_;
  const Nonce nonce_;
  std::shared_ptr<MemoryFile> file_;
  bool file_tried_ = false;
};

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

#endif  // MPI_HYBRID_RMA_PROCESS_MEMORY_H_
