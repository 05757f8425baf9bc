#ifndef SIM_QUEUE_PAIR_TRANSITIONS_H_
#define SIM_QUEUE_PAIR_TRANSITIONS_H_

#include <infiniband/verbs.h>

namespace weft::sim {

// What of `mask` concerns a queue pair of the service type: XRC's halves are told what only the other one has, and make nothing of it, as
// the kernel's verbs do (perftest relies on it).
int RelevantAttributes(ibv_qp_type type, int mask);

// Whether a queue pair of the service type may go from one state to the other with these attributes (IBV_QP_* in `mask`, IBV_QP_STATE
// left aside): all that the transition needs are there and none that it does not know (the tables of ibv_modify_qp(3) and of the
// InfiniBand specification, volume 1, table 91).
bool TransitionAllowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_TRANSITIONS_H_
