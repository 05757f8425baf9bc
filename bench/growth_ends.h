#ifndef BENCH_GROWTH_ENDS_H_
#define BENCH_GROWTH_ENDS_H_

#include <cstdint>
#include <string>

#include "bench/control_channel.h"

// The two processes of a row of the table: `connections` queue pairs between them, with one completion queue for
// receives and one for sends at each end.
namespace weft::bench {

struct GrowthShape {
  std::string address;
  int64_t connections = 1;
  int64_t samples = 1;  // of each figure, about
};

// What the initiator found. Times in seconds.
struct Growth {
  double empty_poll = 0;  // ibv_poll_cq that finds nothing, of a program that spins
  double arm = 0;         // ibv_req_notify_cq
  double deregister = 0;  // ibv_dereg_mr of a region that nobody uses
  double one = 0;         // round trip of 64 bytes, always on the same queue pair
  double in_turn = 0;     // ... on each queue pair in turn
  double kib = 0;         // resident memory of each queue pair, after all were used and polled
  double connects_per_second = 0;
};

// Both throw Failure. The responder echoes as the initiator asks, until the initiator closes `control`.
Growth RunInitiator(const GrowthShape& shape, ControlChannel& control);
void RunResponder(const GrowthShape& shape, ControlChannel& control);

}  // namespace weft::bench

#endif  // BENCH_GROWTH_ENDS_H_
