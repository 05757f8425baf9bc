#ifndef MPI_HYBRID_SHM_PROCESS_READER_H_
#define MPI_HYBRID_SHM_PROCESS_READER_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::mpi::shm {

// Reads the memory of another process of this host, where the kernel lets this one do that: the same user, and no Yama, container or
// namespace in between. The process's number may be another one's when it has ended, which only the caller can find out.
class ProcessReader {
 public:
  explicit ProcessReader(pid_t pid = 0) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  // Whether it can be read at all, and is the one that has the cookie, of at most 64 bytes, at that address.
  bool Reaches(uint64_t address, std::span<const uint8_t> cookie) const;
  // process_vm_readv(2) of `bytes` in one piece. Bytes, maybe fewer; 0: the kernel does not copy them.
  size_t Read(std::span<const iovec> to, uint64_t from, size_t bytes) const;

 private:
  pid_t pid_;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_PROCESS_READER_H_
