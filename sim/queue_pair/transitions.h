#ifndef SIM_QUEUE_PAIR_TRANSITIONS_H_
#define SIM_QUEUE_PAIR_TRANSITIONS_H_

#include <infiniband/verbs.h>

namespace weft::sim {

// The part of `mask` that concerns a queue pair of the service type. The two XRC types ignore attributes that only the
// other one has, as the kernel's verbs do (perftest relies on it).
int RelevantAttributes(ibv_qp_type type, int mask);

// Whether a queue pair of the service type may go from one state to the other with these attributes (IBV_QP_* in
// `mask`, without IBV_QP_STATE): all that the transition requires are there, and no others (the tables of
// ibv_modify_qp(3) and of the InfiniBand specification, volume 1, table 91).
bool TransitionAllowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_TRANSITIONS_H_
