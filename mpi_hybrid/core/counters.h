#ifndef MPI_HYBRID_CORE_COUNTERS_H_
#define MPI_HYBRID_CORE_COUNTERS_H_

#include <cstdint>

namespace weft::mpi {

// What happened in this process, for MPI_T's performance variables. Guarded by the library's lock.
struct Counters {
  uint64_t messages_sent = 0, bytes_sent = 0;  // to other processes, by the sockets; bytes of data
  uint64_t messages_received = 0, bytes_received = 0;
  uint64_t rdma_operations = 0, rdma_bytes = 0;  // work requests of one-sided communication, as their origin
};
inline Counters g_counters;

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_COUNTERS_H_
