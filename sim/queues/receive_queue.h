#ifndef SIM_QUEUES_RECEIVE_QUEUE_H_
#define SIM_QUEUES_RECEIVE_QUEUE_H_

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/spin_lock.h"

namespace weft::sim {

// The ring of posted receives; counters as in SendQueue: completed <= taken <= posted.
class ReceiveQueue {
 public:
  ReceiveQueue(uint32_t depth, uint32_t max_sge);

  // Producers. 0, EINVAL (too many elements) or ENOMEM (full), with `*bad` at the first request not posted; those before it are posted.
  int Post(ibv_recv_wr* list, ibv_recv_wr** bad);
  // One, without excluding other producers: for what comes from a shared queue, by the consumer alone.
  int Post(const ibv_recv_wr& wr);
  uint64_t posted() const { return posted_.load(std::memory_order_acquire); }

  // Consumer.
  // What a producer has begun to post is posted now; whoever begins later sees what was stored before.
  void AwaitProducers() { const std::lock_guard wait(post_mutex_); }
  struct Entry {
    uint64_t id = 0;
    uint8_t pieces = 0;
  };
  const Entry& entry(uint64_t count) const { return entries_[count % depth_]; }
  const ibv_sge* elements(uint64_t count) const { return &elements_[(count % depth_) * max_sge_]; }
  iovec* memory() { return memory_.get(); }  // of the one receive that is being filled
  uint64_t taken = 0;
  uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }
  void Complete() { completed_.store(completed() + 1, std::memory_order_release); }
  void Clear();

 private:
  const uint32_t depth_, max_sge_;
  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<ibv_sge[]> elements_;
  std::unique_ptr<iovec[]> memory_;
  std::atomic<uint64_t> posted_{0};     // as in SendQueue: release at one side, acquire at the other
  std::atomic<uint64_t> completed_{0};
  SpinLock post_mutex_;  // of producers
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_RECEIVE_QUEUE_H_
