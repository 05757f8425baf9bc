#ifndef SIM_CM_SURROUNDINGS_H_
#define SIM_CM_SURROUNDINGS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "llp/handshake.h"
#include "transport/network.h"

namespace weft::sim {

class QueuePair;

// Finds the queue pair of an ibv_qp; nullptr: there is none.
using QueuePairResolver = std::shared_ptr<QueuePair> (*)(ibv_qp*);

// What connection management needs from its RNIC. All references outlive it.
struct Surroundings {
  transport::Network& network;  // timers and deferred work
  llp::Wire& wire;
  uint64_t host_id;             // the same for all Weft ends on one host
  QueuePairResolver queue_pair_of;
};

}  // namespace weft::sim

#endif  // SIM_CM_SURROUNDINGS_H_
