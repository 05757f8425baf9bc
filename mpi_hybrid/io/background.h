#ifndef MPI_HYBRID_IO_BACKGROUND_H_
#define MPI_HYBRID_IO_BACKGROUND_H_

#include "mpi_hybrid/io/access.h"
#include "mpi_hybrid/p2p/request/request.h"

// Accesses that go on while the program does something else. With the library's lock.
namespace weft::mpi::io {

// An access under way. Its status tells what was moved.
class FileRequest final : public Request {
 public:
  FileRequest() : Request(Kind::kFile) {}

  Access access;
  Error outcome;        // until it is complete: of whoever works at it
  MPI_Count moved = 0;
};

// Carries `access` out by this process alone, in a thread that all files share. `*request` is the caller's reference.
void StartAlone(Access access, Request** request);

// Carries it out together with the other ranks, in a thread of the file, after what was started so before; `begun` is why this rank
// cannot (there are others then). From then on the library has threads.
void StartTogether(File& file, Access access, const Error& begun, Request** request);

// Waits for what StartTogether started: collective operations of a file are one after the other.
void AwaitTogether(File& file);
// ... and what StartAlone did, and ends the file's thread.
void EndBackground(File& file);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_BACKGROUND_H_
