#ifndef SIM_QUEUE_PAIR_H_
#define SIM_QUEUE_PAIR_H_
// (public part; the lead is writing the rest)
#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "sim/completion_queue.h"
#include "sim/memory.h"

namespace weft::sim {

class Rnic;

struct QueuePairOptions {
  std::shared_ptr<Pd> pd;
  std::shared_ptr<CompletionQueue> send_cq;
  std::shared_ptr<CompletionQueue> receive_cq;
  ibv_qp_cap capabilities{};        // within the limits of sim/device.h; checked by the caller
  bool signal_all = false;
  std::shared_ptr<AsyncSink> async;
  void* owner = nullptr;            // ibv_qp*, for async events
};

// A reliable connected queue pair. Thread safe. Create through Rnic::CreateQueuePair.
class QueuePair : public std::enable_shared_from_this<QueuePair> {
 public:
  uint32_t number() const;
  const ibv_qp_cap& capabilities() const;   // what was granted (at least what was asked)

  // The verbs: 0 or a positive errno with `*bad` at the first work request not posted. EINVAL: state, opcode, flags,
  // too many SGEs, inline too long; ENOMEM: queue full; EOPNOTSUPP: an opcode that this RNIC does not have.
  int PostSend(ibv_send_wr* list, ibv_send_wr** bad);
  int PostReceive(ibv_recv_wr* list, ibv_recv_wr** bad);
  // ibv_modify_qp / ibv_query_qp. EINVAL leaves the queue pair as it was.
  int Modify(const ibv_qp_attr& attributes, int mask);
  void Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) const;  // `init`'s cq and srq pointers are the caller's
  // Ends the connection, drops its completions and lets go of everything. Last call.
  void Destroy();
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_H_
