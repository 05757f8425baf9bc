#ifndef BENCH_COLLECTIVES_MODEL_NETWORK_H_
#define BENCH_COLLECTIVES_MODEL_NETWORK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Carries out the actions of all ranks in virtual time. It moves no data.
namespace weft::bench {

// One step of a rank: that of a schedule (mpi_hybrid/coll/schedule.h), of which only the length of the data is left.
struct Action {
  enum class Kind : uint8_t { kSend, kReceive, kCopy, kReduce, kEndOfRound };

  Kind kind = Kind::kEndOfRound;
  int peer = 0;  // a rank
  int64_t bytes = 0;
};
using Program = std::vector<Action>;

// The hosts and what connects them. A message costs its sender's processor, waits for the sender's host's link, takes
// the latency, waits for the link of the receiver's host, and costs the receiver's processor. Its first byte may arrive
// before its last one has left. Within a host, the link is the host's memory. The switch between the hosts is never
// busy, and a receiver stores a message that arrives before its receive.
struct Network {
  double latency_us = 50, host_latency_us = 1;           // of a message between hosts; within one
  double link_gbit = 1;                                  // a host's link in each direction, for all its ranks
  double memory_gbit = 80;                               // a host's memory, for all its ranks
  double message_cpu_us = 5, host_message_cpu_us = 0.5;  // at each end of a message between hosts; within one
  double reduce_ns_per_byte = 0.2;
  int processors = 0;  // of each host; 0: one for each rank
};

struct Outcome {
  double us = 0;  // until the last rank has finished
  // The largest figures of a host (messages to or from other hosts) and of a rank, in the direction that has more.
  int64_t host_messages = 0, host_bytes = 0;
  int64_t rank_messages = 0, rank_bytes = 0;

  bool operator==(const Outcome&) const = default;
};

// `host_of`: by rank, the host's number from 0. nullopt: a rank waits for a message that no rank sends, or a message is
// left over.
std::optional<Outcome> CarryOut(const Network& network, std::span<const int> host_of,
                                std::span<const Program> programs);

}  // namespace weft::bench

#endif  // BENCH_COLLECTIVES_MODEL_NETWORK_H_
