#ifndef SIM_QUEUES_ASYNC_SINK_H_
#define SIM_QUEUES_ASYNC_SINK_H_

#include <infiniband/verbs.h>

namespace weft::sim {

// Where asynchronous events go (one per ibv_context). May be called from any thread, without locks held.
class AsyncSink {
 public:
  virtual ~AsyncSink() = default;
  // `owner`: the ibv_cq*, ibv_qp* or ibv_srq* that the element was created with; nullptr for port and device events.
  virtual void OnAsyncEvent(ibv_event_type type, void* owner) = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_ASYNC_SINK_H_
