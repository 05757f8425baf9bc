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

// ibv_srq of type basic or XRC: receives that several queue pairs take from, oldest first. A receive that a queue pair took is that
// queue pair's (it is completed or flushed with it) and its place here is free. Thread safe.
class SharedReceiveQueue {
 public:
  // `max_wr` in 1 .. kMaxSrqWr, `max_sge` in 0 .. kMaxSge; checked by the caller. `owner`: the ibv_srq*, for async events.
  // `completions`: type XRC, where receives complete whatever queue pair took them; null: at the queue pair's.
  SharedReceiveQueue(std::shared_ptr<Pd> pd, uint32_t number, uint32_t max_wr, uint32_t max_sge, std::shared_ptr<AsyncSink> async,
                     void* owner, std::shared_ptr<CompletionQueue> completions = nullptr);

  // ibv_post_srq_recv: 0, EINVAL (too many elements) or ENOMEM (full), with `*bad` at the first request not posted; those
  // before it are posted.
  int Post(ibv_recv_wr* list, ibv_recv_wr** bad);
  // ibv_modify_srq. EINVAL changes nothing: a mask that is not known, a size of 0 or beyond the device's or below what is posted,
  // a limit above the size.
  int Modify(const ibv_srq_attr& attributes, int mask);
  ibv_srq_attr Query() const;

  // For queue pairs: the oldest receive, which becomes the caller's to complete. False: there is none. `elements` has room for
  // max_sge() of them; `wr->sg_list` points there. Allocates nothing. The first time that fewer than the armed limit are left,
  // IBV_EVENT_SRQ_LIMIT_REACHED.
  bool Take(ibv_recv_wr* wr, ibv_sge* elements);
  // Type XRC, of which queue pairs may know still: nothing is taken any more, and no event names the owner.
  void Close();

  // The domain in which the keys of its receives are looked up.
  const Pd& pd() const { return *pd_; }
  uint32_t number() const { return number_; }
  uint32_t max_sge() const { return max_sge_; }
  const std::shared_ptr<CompletionQueue>& completions() const { return completions_; }

  // Queue pairs that were made with it (ibv_destroy_srq is EBUSY while there are any).
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

  bool BelowLimit();  // with mutex_ held; disarms

  const std::shared_ptr<Pd> pd_;
  const uint32_t number_;
  const uint32_t max_sge_;
  const std::shared_ptr<AsyncSink> async_;
  void* const owner_;
  const std::shared_ptr<CompletionQueue> completions_;

  mutable SpinLock mutex_;  // guards what follows; a leaf, but for the sink of events
  Ring ring_;
  uint32_t first_ = 0;
  uint32_t queued_ = 0;
  uint32_t limit_ = 0;      // 0: not armed
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_SHARED_RECEIVE_QUEUE_H_
