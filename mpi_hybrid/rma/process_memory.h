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

// Private memory of another process of this host, which the kernel copies from or to in one go, where it allows that: the
// same user, and no Yama, container or namespace in between. Little goes through a file of the kernel's that is opened when it
// is first of use (MemoryFile). Neither way reaches a process that has its number later, or what it executes then: the file is that of its
// address space, and each other copy begins with the process's mark (base/address_space_mark.h). All return 0 or an errno: ESRCH, the process
// is gone; EFAULT, memory of either side is not mapped; EPERM. An error may come after a part of the bytes was moved.
enum class Direction : uint8_t { kToProcess, kFromProcess };
class ProcessMemory {
 public:
  // That of the process with that number, which has the nonce at that address and says that its AddressSpaceMark() is `mark`. nullptr: it
  // cannot be read or, tried with the nonce, written to, or there is no mark.
  static std::unique_ptr<ProcessMemory> Of(pid_t pid, uint64_t mark, uint64_t nonce_address, const Nonce& nonce);

  int Read(uint64_t from, void* to, size_t bytes);
  int Write(const void* from, uint64_t to, size_t bytes);
  // All of the pieces: at most 64, and 1 GiB of them. The two lists are used up.
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

// `bytes` of data between memory of this process and of that one, where the cursors are; addresses of `there` are that
// process's.
int CopyWithProcess(Direction direction, ProcessMemory& process, TypeCursor& here, TypeCursor& there, size_t bytes);

// The same, for a side here of many small pieces: the kernel has to do with those of the other side only.
int CopyThroughBuffer(Direction direction, ProcessMemory& process, TypeCursor& here, TypeCursor& there, size_t bytes);

// Packed data to blocks of that process's memory, whose offsets are its addresses.
int WriteBlocks(ProcessMemory& process, const BlockSource::Part& part, const uint8_t* given);

// An accumulate on blocks of that process's memory, whose offsets are its addresses, by reading, working and writing
// while nobody else accumulates there. `given` and `fetched` are packed; each may be null.
int AccumulateInProcess(ProcessMemory& process, const AccumulateGuard& guard, MPI_Op op, const ElementType& type,
                        const BlockSource::Part& part, const uint8_t* given, uint8_t* fetched);
int CompareAndSwapInProcess(ProcessMemory& process, const AccumulateGuard& guard, const ElementType& type, const uint8_t* compare,
                            const uint8_t* given, uint64_t address, uint8_t* fetched);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_PROCESS_MEMORY_H_
