#ifndef MPI_HYBRID_IO_BACKGROUND_H_
#define MPI_HYBRID_IO_BACKGROUND_H_

#include "mpi_hybrid/io/access.h"
#include "mpi_hybrid/p2p/request/request.h"

// Accesses that run while the program does something else. Call with the library's lock held.
namespace weft::mpi::io {

// A running access. Its status tells how much was moved.
class FileRequest final : public Request {
 public:
  FileRequest() : Request(Kind::kFile) {}

  Access access;
  Error outcome;        // until the request is complete, it belongs to the thread that carries out the access
  MPI_Count moved = 0;
};

// Starts `access`, by this process alone, in a thread that all files share. The caller owns the reference in
// `*request`.
void StartAlone(Access access, Request** request);

// Starts `access`, together with the other ranks, in a thread of the file, after all that was started this way before.
// `begun`: why this rank cannot take part; then the file has other ranks. From then on the library has threads.
void StartTogether(File& file, Access access, const Error& begun, Request** request);

// Waits for all that StartTogether started, because the collective operations of a file run one after the other.
void AwaitTogether(File& file);
// Waits for all that StartTogether and StartAlone started, and ends the file's thread.
void EndBackground(File& file);

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_BACKGROUND_H_
