#ifndef SIM_QUEUES_ASYNC_SINK_H_
#define SIM_QUEUES_ASYNC_SINK_H_

#include <infiniband/verbs.h>

namespace weft::sim {

// The receiver of asynchronous events, one for each ibv_context. Called from any thread, without locks.
class AsyncSink {
 public:
  virtual ~AsyncSink() = default;
  // `owner`: the ibv_cq*, ibv_qp* or ibv_srq* with which the object was created; nullptr for port and device events.
  virtual void OnAsyncEvent(ibv_event_type type, void* owner) = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_ASYNC_SINK_H_
