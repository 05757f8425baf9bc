#ifndef BENCH_GROWTH_ENDS_H_
#define BENCH_GROWTH_ENDS_H_

#include <cstdint>
#include <string>

#include "bench/control_channel.h"

// The two processes that measure one row of the table: `connections` queue pairs between them, and at each end one
// completion queue for receives and one for sends.
namespace weft::bench {

struct GrowthShape {
  std::string address;
  int64_t connections = 1;
  int64_t samples = 1;  // of each value, approximately
};

// The results of the initiator. Times in seconds.
struct Growth {
  double empty_poll = 0;  // an ibv_poll_cq of a spinning program that finds nothing
  double arm = 0;         // ibv_req_notify_cq
  double deregister = 0;  // ibv_dereg_mr of an unused region
  double one = 0;         // round trip of 64 bytes, always on the same queue pair
  double in_turn = 0;     // ... on each queue pair in turn
  double kib = 0;         // resident memory for each queue pair, after all were used and polled
  double connects_per_second = 0;
};

// Both throw Failure. The responder echoes as the initiator asks, until the initiator closes `control`.
Growth RunInitiator(const GrowthShape& shape, ControlChannel& control);
void RunResponder(const GrowthShape& shape, ControlChannel& control);

}  // namespace weft::bench

#endif  // BENCH_GROWTH_ENDS_H_
