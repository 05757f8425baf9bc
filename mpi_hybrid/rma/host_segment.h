#ifndef MPI_HYBRID_RMA_HOST_SEGMENT_H_
#define MPI_HYBRID_RMA_HOST_SEGMENT_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/job_secret.h"

namespace weft::mpi::rma {

// Memory that processes of one user on one host map. It has no name, so it goes with the last of them, however they
// end; its size is sealed, so that nobody can take pages away from the others.
class HostSegment {
 public:
  HostSegment() = default;
  ~HostSegment();
  HostSegment(HostSegment&& other) noexcept;
  HostSegment& operator=(HostSegment&& other) noexcept;

  // Of zeroes. Returns 0 or an errno: no memory, no descriptor, longer than the process may make a file.
  int Make(size_t bytes);
  // The one that process `pid` has as `fd`, `bytes` long. An errno: there is none, it is no sealed memory of that length, or it
  // may not be had. Whether it is the one that was meant its first bytes have to tell.
  int Map(pid_t pid, int fd, size_t bytes);
  // The part from `offset`, whole pages, of the longer one that process `pid` has as `fd` and whose first bytes are `cookie`. An errno: as Map,
  // or ESRCH, it is another one.
  int MapPart(pid_t pid, int fd, const Nonce& cookie, uint64_t offset, size_t bytes);
  // After Make, until others have mapped it.
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

// A memory file of `bytes` zeroes, in whole pages, whose size nobody can change; `name` is shown only in lists of descriptors (/proc/PID/fd). The caller owns
// the descriptor. Returns 0 or an errno: no memory, no descriptor, longer than the process may make a file.
int MakeMemoryFile(const char* name, uint64_t bytes, int* fd);

// Whether there may be `bytes` from there on in a memory file: 0, or ENOMEM. Pages are counted when they are touched, where being out of
// memory is a signal and no error; where the kernel promises no more than it has they are taken now.
int ReserveMemory(int fd, uint64_t offset, size_t bytes);

// A number that processes on one host, in one namespace of process ids and of one user, have in common. It is no proof:
// it saves trying.
uint64_t HostNumber();

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_SEGMENT_H_
