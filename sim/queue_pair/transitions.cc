#include "sim/queue_pair/transitions.h"

namespace weft::sim {
namespace {

// Which attributes a transition needs, and which others it takes, by service type. XRC's two halves are those of RC.
struct Row {
  ibv_qp_state from, to;
  unsigned types;  // TypeBit()
  int needed, optional;
};

constexpr unsigned kRc = 1, kUc = 2, kUd = 4, kXrcSend = 8, kXrcReceive = 16;

constexpr unsigned TypeBit(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return kRc;
    case IBV_QPT_UC:
      return kUc;
    case IBV_QPT_UD:
      return kUd;
    case IBV_QPT_XRC_SEND:
      return kXrcSend;
    case IBV_QPT_XRC_RECV:
      return kXrcReceive;
    default:
      return 0;
  }
}

constexpr unsigned kConnected = kRc | kUc | kXrcSend | kXrcReceive;
constexpr int kPath = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRetries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kOften = IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

constexpr Row kRows[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kConnected, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, kUd, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, kConnected, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_INIT, kUd, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, kRc | kXrcReceive, kPath | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, kOften | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUc | kXrcSend, kPath, kOften | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUd, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, kRc, IBV_QP_SQ_PSN | kRetries, kOften | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, kXrcSend, IBV_QP_SQ_PSN | kRetries, kOften | IBV_QP_CUR_STATE},
    {IBV_QPS_RTR, IBV_QPS_RTS, kXrcReceive, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT, kOften | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUc, IBV_QP_SQ_PSN, kOften | IBV_QP_CUR_STATE},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUd, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, kRc | kXrcReceive, 0, kOften | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUc | kXrcSend, 0, kOften | IBV_QP_CUR_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUd, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, kConnected | kUd, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, kRc | kXrcReceive, 0, kOften | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUc | kXrcSend, 0, kOften | IBV_QP_CUR_STATE},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUd, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, kRc, 0,
     kOften | kRetries | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUc | kXrcSend | kXrcReceive, 0, kOften | IBV_QP_PKEY_INDEX | IBV_QP_AV},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUd, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, kUc, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_SQE, IBV_QPS_RTS, kUd, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

}  // namespace

int RelevantAttributes(ibv_qp_type type, int mask) {
  switch (type) {
    case IBV_QPT_XRC_SEND:
      return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    case IBV_QPT_XRC_RECV:
      return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    default:
      return mask;
  }
}

bool TransitionAllowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  mask &= ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return mask == 0 || mask == IBV_QP_CUR_STATE;
  for (const Row& row : kRows) {
    if (row.from != from || row.to != to || (row.types & TypeBit(type)) == 0) continue;
    return (mask & row.needed) == row.needed && (mask & ~(row.needed | row.optional)) == 0;
  }
  return false;
}

}  // namespace weft::sim
