#ifndef MPI_HYBRID_P2P_ENGINE_CHANNEL_H_
#define MPI_HYBRID_P2P_ENGINE_CHANNEL_H_

#include <cstdint>

#include "mpi_hybrid/comm/context_pool.h"

namespace weft::mpi {

// kExcuse: an empty message in place of one that cannot be sent because a process died. Its receive fails with
// MPIX_ERR_PROC_FAILED.
enum class SendMode : uint8_t { kStandard, kSynchronous, kReady, kBuffered, kExcuse };

// One of the communicator's two contexts, or one of partitioned communication. The latter are above all contexts of
// communicators, in pairs. The first of a pair carries the announcements; they have the tag of the program, and the
// context is chosen by the request's number among those of the same communicator, pair and tag. The second carries the
// partitions; the context is chosen by the sender's stream for the request, and the tag is the partition's number.
enum class Channel : uint32_t { kPointToPoint = 0, kCollective = 1 };

// numbers wrap around after so many; also the number of streams of a communicator
constexpr uint32_t kMostPartitioned = 1 << 14;
constexpr Channel PartitionedChannel(uint32_t number) {
  static_assert(ContextPool::kContexts <= 1 << 17);
  return static_cast<Channel>(1u << 31 | number % kMostPartitioned << 17);
}
constexpr Channel PartitionChannel(uint32_t stream) {
  return static_cast<Channel>(static_cast<uint32_t>(PartitionedChannel(stream)) | 1);
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_CHANNEL_H_
