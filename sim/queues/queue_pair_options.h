#ifndef SIM_QUEUES_QUEUE_PAIR_OPTIONS_H_
#define SIM_QUEUES_QUEUE_PAIR_OPTIONS_H_

#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/memory/memory.h"
#include "sim/queues/async_sink.h"
#include "sim/queues/completion_queue.h"
#include "sim/queues/shared_receive_queue.h"
#include "sim/queues/xrc_domain.h"
#include "transport/socket_address.h"

namespace weft::sim {

// The options with which a queue pair is created (ibv_create_qp, ibv_create_qp_ex).
struct QueuePairOptions {
  std::shared_ptr<Pd> pd;
  std::shared_ptr<CompletionQueue> send_cq;
  std::shared_ptr<CompletionQueue> receive_cq;
  std::shared_ptr<SharedReceiveQueue> shared_receives;  // null: the queue pair has its own receive queue
  // IBV_QPT_XRC_RECV: `xrc` is set; pd and completion queues are those of the XRC domain.
  std::shared_ptr<XrcDomain> xrc;
  ibv_qp_type type = IBV_QPT_RC;  // or IBV_QPT_UC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV
  std::vector<transport::SocketAddress> addresses;  // the device's, in the order of its GIDs (RoCE persona)
  int interface_index = 0;
  ibv_qp_cap capabilities{};  // within the limits of sim/device/device.h; checked by the caller
  bool signal_all = false;
  std::shared_ptr<AsyncSink> async;
  void* owner = nullptr;      // ibv_qp*, for async events
  std::string device;         // its name; for statistics and faults
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_QUEUE_PAIR_OPTIONS_H_
