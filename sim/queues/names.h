#ifndef SIM_QUEUES_NAMES_H_
#define SIM_QUEUES_NAMES_H_

#include <infiniband/verbs.h>

// Names of the verbs' enumerations, as in their headers without the prefix, for traces, statistics and messages. "?"
// for unknown values.
namespace weft::sim {

const char* NameOf(ibv_qp_type type);      // "RC"
const char* NameOf(ibv_qp_state state);    // "RTS"
const char* NameOf(ibv_wc_status status);  // "WR_FLUSH_ERR"
const char* NameOf(ibv_wc_opcode opcode);  // "RDMA_WRITE"; of a completion
const char* NameOf(ibv_wr_opcode opcode);  // "SEND_WITH_INV"; of a work request
const char* NameOf(ibv_event_type event);  // "QP_ACCESS_ERR"

}  // namespace weft::sim

#endif  // SIM_QUEUES_NAMES_H_
