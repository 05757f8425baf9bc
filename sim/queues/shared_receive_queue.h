#ifndef SIM_QUEUES_SHARED_RECEIVE_QUEUE_H_
#define SIM_QUEUES_SHARED_RECEIVE_QUEUE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/spin_lock.h"
#include "sim/queues/async_sink.h"
#include "sim/memory/memory.h"

namespace weft::sim {

class CompletionQueue;

// ibv_srq of type basic or XRC: receives that several queue pairs take, oldest first. A receive that a queue pair has
// taken belongs to it (it is completed or flushed with it), and its entry here is free. Thread safe.
class SharedReceiveQueue {
 public:
  // `max_wr` in 1 .. kMaxSrqWr, `max_sge` in 0 .. kMaxSge; checked by the caller. `owner`: the ibv_srq*, for async
  // events. `completions`: for type XRC, where receives complete whichever queue pair took them; null: at the queue
  // pair's.
  SharedReceiveQueue(std::shared_ptr<Pd> pd, uint32_t number, uint32_t max_wr, uint32_t max_sge, std::shared_ptr<AsyncSink> async,
                     void* owner, std::shared_ptr<CompletionQueue> completions = nullptr);

  // ibv_post_srq_recv: 0, EINVAL (too many elements) or ENOMEM (full), with `*bad` at the first request not posted;
  // requests before it are posted.
  int Post(ibv_recv_wr* list, ibv_recv_wr** bad);
  // ibv_modify_srq. EINVAL changes nothing: an unknown mask; a size of 0, beyond the device's limit, or less than what
  // is posted; a limit above the size.
  int Modify(const ibv_srq_attr& attributes, int mask);
  ibv_srq_attr Query() const;

  // For queue pairs: takes the oldest receive, which the caller must then complete. Returns false if there is none.
  // `elements` has room for max_sge() of them; `wr->sg_list` points there. Allocates nothing. Reports
  // IBV_EVENT_SRQ_LIMIT_REACHED the first time that fewer receives are left than the armed limit.
  bool Take(ibv_recv_wr* wr, ibv_sge* elements);
  // Type XRC; queue pairs may still refer to it: no receive is taken any more, and no event names the owner.
  void Close();

  // The domain for the keys of its receives.
  const Pd& pd() const { return *pd_; }
  uint32_t number() const { return number_; }
  uint32_t max_sge() const { return max_sge_; }
  const std::shared_ptr<CompletionQueue>& completions() const { return completions_; }

  // Queue pairs created with it (ibv_destroy_srq returns EBUSY if there are any).
  std::atomic<int> users{0};

 private:
  struct Entry {
    uint64_t id = 0;
    uint8_t pieces = 0;
  };
  struct Ring {
    Ring(uint32_t its_depth, uint32_t max_sge)
        : depth(its_depth), entries(new Entry[its_depth]), elements(new ibv_sge[size_t{its_depth} * max_sge]) {}
    uint32_t depth;
    std::unique_ptr<Entry[]> entries;
    std::unique_ptr<ibv_sge[]> elements;
  };

  bool BelowLimit();  // requires mutex_; disarms

  const std::shared_ptr<Pd> pd_;
  const uint32_t number_;
  const uint32_t max_sge_;
  const std::shared_ptr<AsyncSink> async_;
  void* const owner_;
  const std::shared_ptr<CompletionQueue> completions_;

  mutable SpinLock mutex_;  // guards the members below; a leaf, except for the sink of events
  Ring ring_;
  uint32_t first_ = 0;
  uint32_t queued_ = 0;
  uint32_t limit_ = 0;      // 0: not armed
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_SHARED_RECEIVE_QUEUE_H_
