#ifndef MPI_HYBRID_RMA_SHARED_SEGMENT_H_
#define MPI_HYBRID_RMA_SHARED_SEGMENT_H_

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"

namespace weft::mpi::rma {

// Memory that all processes of a communicator on one host map. It has no name, so that it is freed with the last of
// them, however they end.
class SharedSegment {
 public:
  // Collective over `comm`, with the same `bytes` at all processes. `failed`: why this process cannot take part; then
  // it fails at all. MPI_ERR_RMA_SHARED: the processes cannot share memory. MPI_ERR_NO_MEM.
  Error Make(Comm& comm, size_t bytes, Error failed = {});
  SharedSegment() = default;
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  uint8_t* data() const { return memory_ + kHeaderBytes; }
  pthread_mutex_t* mutex() const { return reinterpret_cast<pthread_mutex_t*>(memory_); }  // robust, shared

 private:
  static constexpr size_t kHeaderBytes = 4096;
  Error MakeFirst(size_t bytes, int* fd);
  Error Map(int fd, size_t bytes);

  uint8_t* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_SHARED_SEGMENT_H_
