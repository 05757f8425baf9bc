#ifndef MPI_HYBRID_P2P_ENGINE_CHANNEL_H_
#define MPI_HYBRID_P2P_ENGINE_CHANNEL_H_

#include <cstdint>

#include "mpi_hybrid/comm/context_pool.h"

namespace weft::mpi {

// kExcuse: an empty message in place of one that cannot be sent since a process died; its receive fails with MPIX_ERR_PROC_FAILED.
enum class SendMode : uint8_t { kStandard, kSynchronous, kReady, kBuffered, kExcuse };

// Which of the communicator's two contexts, or one of partitioned communication, which stand above every context of a communicator. There the first
// of the two has the announcements: with the tag that the program chose, and the number of the request among those of the same communicator, pair and
// tag. The second has the partitions: a stream of the sender for each request, and the partition's number as the tag.
enum class Channel : uint32_t { kPointToPoint = 0, kCollective = 1 };

constexpr uint32_t kMostPartitioned = 1 << 14;  // numbers start again after so many; streams of a communicator
constexpr Channel PartitionedChannel(uint32_t number) {
  static_assert(ContextPool::kContexts <= 1 << 17);
  return static_cast<Channel>(1u << 31 | number % kMostPartitioned << 17);
}
constexpr Channel PartitionChannel(uint32_t stream) {
  return static_cast<Channel>(static_cast<uint32_t>(PartitionedChannel(stream)) | 1);
}

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_CHANNEL_H_
