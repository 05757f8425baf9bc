#ifndef MPI_HYBRID_HOST_SEALED_MEMORY_H_
#define MPI_HYBRID_HOST_SEALED_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/descriptor.h"
#include "base/job_secret.h"
#include "mpi_hybrid/host/mapping.h"

namespace weft::mpi::host {

// Memory that one process makes and others of its user and host map, which find its descriptor in /proc. It has no name,
// so that it is freed with the last of them, however they end. Its size is sealed, so that no process can take pages
// away from the others.
class SealedMemory {
 public:
  // Makes memory of zeros. Returns 0 or an errno: no memory, no descriptor, or longer than the process may make a file.
  int Make(size_t bytes);
  // Maps the memory that process `pid` has as descriptor `fd`, of length `bytes`. Returns 0 or an errno: there is none,
  // it is not a sealed memory file of that length, or access is denied. The caller must check by the first bytes
  // whether it is the intended one.
  int Map(pid_t pid, int fd, size_t bytes);
  // Maps a part, of whole pages from `offset` on, of the longer memory that process `pid` has as `fd` and that begins
  // with `cookie`. Returns 0 or an errno: as for Map, or ESRCH: it begins with other bytes.
  int MapPart(pid_t pid, int fd, const Nonce& cookie, uint64_t offset, size_t bytes);
  // Valid after Make, until CloseDescriptor; for other processes to map. -1: none.
  int fd() const { return file_.get(); }
  void CloseDescriptor() { file_.Close(); }
  void Unmap() { mapping_ = {}; }

  uint8_t* data() const { return mapping_.data(); }
  size_t size() const { return mapping_.size(); }

 private:
  int Open(pid_t pid, int fd, uint64_t* length);
  int MapHere(size_t bytes, uint64_t offset);

  Descriptor file_;
  Mapping mapping_;
};

// Makes a memory file of `bytes` zeros, with a size that no process can change. `name` appears only in lists of
// descriptors (/proc/PID/fd). Returns 0 or an errno: no memory, no descriptor, or longer than the process may make a
// file.
int MakeMemoryFile(const char* name, uint64_t bytes, Descriptor* file);
// Whether nobody can make the memory file shorter, and its length.
bool IsSealed(int fd, uint64_t* length);

// Returns 0 if a memory file may use `bytes` from `offset` on, else ENOMEM. Normally pages are allocated when they are
// touched, and a lack of memory is then a signal and not an error. If the kernel does not overcommit memory, they are
// allocated now.
int ReserveMemory(int fd, uint64_t offset, size_t bytes);

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_SEALED_MEMORY_H_
