#ifndef MPI_HYBRID_RMA_HOST_SEGMENT_H_
#define MPI_HYBRID_RMA_HOST_SEGMENT_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/job_secret.h"

namespace weft::mpi::rma {

// Memory that processes of one user on one host map. It has no name, so that it is freed with the last of them, however
// they end. Its size is sealed, so that no process can take pages away from the others.
class HostSegment {
 public:
  HostSegment() = default;
  ~HostSegment();
  HostSegment(HostSegment&& other) noexcept;
  HostSegment& operator=(HostSegment&& other) noexcept;

  // Makes memory of zeros. Returns 0 or an errno: no memory, no descriptor, or longer than the process may make a file.
  int Make(size_t bytes);
  // Maps the memory that process `pid` has as descriptor `fd`, of length `bytes`. Returns 0 or an errno: there is none,
  // it is not a sealed memory file of that length, or access is denied. The caller must check by the first bytes
  // whether it is the intended one.
  int Map(pid_t pid, int fd, size_t bytes);
  // Maps a part, of whole pages from `offset` on, of the longer memory that process `pid` has as `fd` and that begins
  // with `cookie`. Returns 0 or an errno: as for Map, or ESRCH: it begins with other bytes.
  int MapPart(pid_t pid, int fd, const Nonce& cookie, uint64_t offset, size_t bytes);
  // Valid after Make, until CloseDescriptor; for other processes to map.
  int fd() const { return fd_; }
  void CloseDescriptor();
  void Unmap();

  uint8_t* data() const { return memory_; }
  size_t size() const { return bytes_; }

 private:
  int Open(pid_t pid, int fd, uint64_t* length);
  int MapHere(size_t bytes, uint64_t offset);

  int fd_ = -1;
  uint8_t* memory_ = nullptr;
  size_t bytes_ = 0;
};

// Makes a memory file of `bytes` zeros, in whole pages, with a size that no process can change. `name` appears only in
// lists of descriptors (/proc/PID/fd). The caller owns the descriptor. Returns 0 or an errno: no memory, no descriptor,
// or longer than the process may make a file.
int MakeMemoryFile(const char* name, uint64_t bytes, int* fd);

// Returns 0 if a memory file may use `bytes` from `offset` on, else ENOMEM. Normally pages are allocated when they are
// touched, and a lack of memory is then a signal and not an error. If the kernel does not overcommit memory, they are
// allocated now.
int ReserveMemory(int fd, uint64_t offset, size_t bytes);

// A number that is equal for processes on one host, in one pid namespace and one network namespace (where bells ring)
// and of one user. It is no proof; it only avoids useless attempts.
uint64_t HostNumber();

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_SEGMENT_H_
