#ifndef SIM_DATAGRAM_TRANSITIONS_H_
#define SIM_DATAGRAM_TRANSITIONS_H_

#include <infiniband/verbs.h>

namespace weft::sim {

// Whether ibv_modify_qp may take a datagram queue pair from one state to the other with the attributes of `mask` (ibv_modify_qp(3), IBTA volume 1
// section 11.2.5.2): the required ones are there, and no others than the optional ones.
inline bool MayModifyDatagram(ibv_qp_state from, ibv_qp_state to, int mask) {
  struct Transition {
    ibv_qp_state from, to;
    int required, optional;
  };
  constexpr int kIdentity = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  constexpr int kRunning = IBV_QP_CUR_STATE | IBV_QP_QKEY;
  static constexpr Transition kTransitions[] = {
      {IBV_QPS_RESET, IBV_QPS_INIT, kIdentity, 0},
      {IBV_QPS_INIT, IBV_QPS_INIT, 0, kIdentity},
      {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
      {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kRunning},
      {IBV_QPS_RTS, IBV_QPS_RTS, 0, kRunning},
      {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
      {IBV_QPS_SQD, IBV_QPS_RTS, 0, kRunning},
      {IBV_QPS_SQE, IBV_QPS_RTS, 0, kRunning},
  };
  const int given = mask & ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return given == 0;
  for (const Transition& known : kTransitions) {
    if (known.from != from || known.to != to) continue;
    return (given & known.required) == known.required && (given & ~(known.required | known.optional)) == 0;
  }
  return false;
}

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_TRANSITIONS_H_
