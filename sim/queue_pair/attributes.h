#ifndef SIM_QUEUE_PAIR_ATTRIBUTES_H_
#define SIM_QUEUE_PAIR_ATTRIBUTES_H_

#include <infiniband/verbs.h>

#include <optional>

#include "sim/queue_pair/peer.h"
#include "sim/queues/queue_pair_options.h"

namespace weft::sim {

// Whether the values named by `mask` are within the device's limits (ibv_modify_qp(3), RoCE persona).
bool ValuesAllowed(const ibv_qp_attr& attributes, int mask);
// Copies the attributes that a program may set.
void TakeAttributes(const ibv_qp_attr& from, int mask, ibv_qp_attr& to);

Service ServiceOf(ibv_qp_type type);
// The peer named by the attributes of the transition to RTR. nullopt: no such port or GID.
std::optional<PeerChoice> ChoosePeer(const ibv_qp_attr& attributes, const QueuePairOptions& options, rdmap::Delivery delivery);

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_ATTRIBUTES_H_
