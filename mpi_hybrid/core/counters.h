#ifndef MPI_HYBRID_CORE_COUNTERS_H_
#define MPI_HYBRID_CORE_COUNTERS_H_

#include <cstdint>

namespace weft::mpi {

// Events counted in this process, for the performance variables of MPI_T. Guarded by the library's lock.
struct Counters {
  uint64_t messages_sent = 0, bytes_sent = 0;  // to other processes; bytes of data
  uint64_t messages_received = 0, bytes_received = 0;
  uint64_t unexpected_messages = 0;  // arrived before a receive was posted, from other processes and from this one
  uint64_t unexpected_most = 0;  // the highest number of them that waited at one time, since the last reset by a reader
  uint64_t host_bytes_sent = 0;  // bytes of frames sent through memory shared with ranks of this host
  uint64_t host_copies = 0;      // parts of messages copied directly out of the memory of the sending rank
  uint64_t lock_handovers = 0;   // times that a thread in a long operation let another thread have the library's lock
  uint64_t memory_waits = 0;     // waits of windows that watched only memory shared with ranks of this host
  // Puts and accumulates that were deferred to their target, a rank of this host, until the epoch ended
  uint64_t deferred_operations = 0;
  uint64_t window_messages = 0;  // of one-sided communication, to targets
  uint64_t rdma_operations = 0, rdma_bytes = 0;  // other work requests of one-sided communication, counted at their origin
  // Calls of the program, regardless of how they are carried out.
  uint64_t puts = 0, gets = 0, accumulates = 0, get_accumulates = 0, fetch_and_ops = 0, compare_and_swaps = 0;
};
inline Counters g_counters;

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_COUNTERS_H_
