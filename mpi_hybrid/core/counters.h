#ifndef MPI_HYBRID_CORE_COUNTERS_H_
#define MPI_HYBRID_CORE_COUNTERS_H_

#include <cstdint>

namespace weft::mpi {

// What happened in this process, for MPI_T's performance variables. Guarded by the library's lock.
struct Counters {
  uint64_t messages_sent = 0, bytes_sent = 0;  // to other processes; bytes of data
  uint64_t messages_received = 0, bytes_received = 0;
  uint64_t unexpected_messages = 0;  // of those, and of those to itself: what came before its receive
  uint64_t unexpected_most = 0;      // the most of those that waited at a time, since whoever reads it set it back
  uint64_t host_bytes_sent = 0;  // of frames, through memory in common with ranks of this host
  uint64_t host_copies = 0;      // parts of messages that were copied from the memory of the rank that sent them
  uint64_t lock_handovers = 0;   // times that a thread with long work let another have the library's lock
  uint64_t memory_waits = 0;     // of windows, in which nothing but memory in common with ranks of this host was looked at
  uint64_t deferred_operations = 0;  // Puts and accumulates that were left to their target, a rank of this host, until the epoch ended
  uint64_t rdma_operations = 0, rdma_bytes = 0;  // work requests of one-sided communication, as their origin
  // What the program called, whatever carries it.
  uint64_t puts = 0, gets = 0, accumulates = 0, get_accumulates = 0, fetch_and_ops = 0, compare_and_swaps = 0;
};
inline Counters g_counters;

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_COUNTERS_H_
