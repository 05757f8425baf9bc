#ifndef MPI_HYBRID_HOST_PROCESS_READER_H_
#define MPI_HYBRID_HOST_PROCESS_READER_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address_space_mark.h"

namespace weft::mpi::host {

// Reads the memory of another process of this host, if the kernel permits that: it has the same user, and no Yama,
// container or namespace prevents it. It never reads a later process with the same pid (base/address_space_mark.h).
class ProcessReader {
 public:
  // `mark`: the AddressSpaceMark() that the process has told; 0: it is not read.
  explicit ProcessReader(pid_t pid = 0, uint64_t mark = 0) : process_(pid, mark) {}

  pid_t pid() const { return process_.pid(); }
  // Whether the process can be read at all and has the cookie, of at most 64 bytes, at that address.
  bool Reaches(uint64_t address, std::span<const uint8_t> cookie) const;
  // Reads one contiguous piece of `bytes` bytes at `from`. Returns the number of bytes read, which may be smaller. 0:
  // the kernel refuses to copy them, or the process is gone.
  size_t Read(std::span<const iovec> to, uint64_t from, size_t bytes) const;

 private:
  MarkedProcess process_;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_PROCESS_READER_H_
