#ifndef MPI_HYBRID_RMA_REQUEST_ID_H_
#define MPI_HYBRID_RMA_REQUEST_ID_H_

#include <cstdint>

#include "mpi_hybrid/core/process_table.h"

namespace weft::mpi::rma {

// The wr_id of a link's work requests, so that the completions of all links can use one queue.
//
//  63        62                     40 39                                     0
//  +---------+-----------------------+----------------------------------------+
//  | receive | process               | number of the request, modulo 2^40; or |
//  |         |                       | index of the receive                   |
//  +---------+-----------------------+----------------------------------------+
class RequestId {
 public:
  static uint64_t OfSend(ProcessId process, uint64_t number) { return Process(process) | (number & kNumbers); }
  static uint64_t OfReceive(ProcessId process, uint32_t index) { return kReceive | Process(process) | index; }

  static bool IsReceive(uint64_t id) { return (id & kReceive) != 0; }
  static uint64_t ProcessOf(uint64_t id) { return (id & ~kReceive) >> kShift; }
  static uint32_t IndexOf(uint64_t id) { return static_cast<uint32_t>(id & kNumbers); }
  // The number of a request that is at most `last` and less than 2^40 older.
  static uint64_t NumberOf(uint64_t id, uint64_t last) { return last - ((last - id) & kNumbers); }

 private:
  static constexpr int kShift = 40;
  static constexpr uint64_t kNumbers = (uint64_t{1} << kShift) - 1, kReceive = uint64_t{1} << 63;
  static uint64_t Process(ProcessId process) { return static_cast<uint64_t>(process) << kShift; }
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REQUEST_ID_H_
