#ifndef MPI_HYBRID_HOST_PROCESS_MEMORY_H_
#define MPI_HYBRID_HOST_PROCESS_MEMORY_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/address_space_mark.h"
#include "base/memory_file.h"

namespace weft::mpi::host {

enum class Direction : uint8_t { kToProcess, kFromProcess };

// Private memory of another process of this host, which the kernel copies if it permits that: the process has the same
// user, and no Yama, container or namespace prevents it. Where it is written too, small amounts are copied through a file
// of the kernel that is opened at its first use (MemoryFile). Neither way can reach a later process with the same pid, or a program that the
// process executes later: the file belongs to the address space, and each other copy begins with the process's mark
// (base/address_space_mark.h). All who only read a process share one object, and all who write it share another, which is
// closed with the last window. Call with the library's lock held.
class ProcessMemory {
 public:
  // What the process has told of itself: its AddressSpaceMark(), and that these bytes, at most 64, are at that address.
  struct Claim {
    pid_t pid = 0;
    uint64_t mark = 0;  // 0: there is none
    uint64_t cookie_address = 0;
    std::span<const uint8_t> cookie;
  };
  enum class Access : uint8_t { kRead, kReadAndWrite };

  // nullptr: the memory cannot be read, or, if that is asked for, the cookie cannot be written back (which is tried); or
  // the claim is wrong. What is proven holds for later claims with the same mark and access.
  static std::shared_ptr<ProcessMemory> Of(const Claim& claim, Access access);

  pid_t pid() const { return process_.pid(); }

  // Reads one contiguous piece of `bytes` bytes. Returns the number of bytes read, which may be smaller. 0: the kernel
  // refuses to copy them, or the process is gone.
  size_t ReadSome(std::span<const iovec> to, uint64_t from, size_t bytes) const;

  // The other functions return 0 or an errno. ESRCH: the process is gone. EFAULT: memory of either side is not mapped.
  // EPERM. A part of the bytes may have been moved before an error.

  // Between parts, other threads may have the library.
  int Read(uint64_t from, void* to, size_t bytes);
  int Write(const void* from, uint64_t to, size_t bytes);
  // Moves all of the pieces, kMostPieces and 1 GiB in total at most. The two lists are consumed.
  int Move(Direction direction, iovec* here, iovec* there, size_t pieces, size_t bytes);
  static constexpr size_t kMostPieces = MarkedProcess::kMostPieces;

 private:
  ProcessMemory(const MarkedProcess& process, Access access) : process_(process), access_(access) {}
  bool Proves(const Claim& claim) const;
  int MoveByCall(Direction direction, iovec* here, iovec* there, size_t pieces, size_t bytes) const;

  const MarkedProcess process_;
  const Access access_;
  bool file_tried_ = false;
  std::shared_ptr<MemoryFile> file_;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_PROCESS_MEMORY_H_
