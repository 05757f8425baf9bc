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

// The ring of posted receives. Counters as in SendQueue: completed <= taken <= posted.
class ReceiveQueue {
 public:
  ReceiveQueue(uint32_t depth, uint32_t max_sge);

  // Producers. Returns 0, EINVAL (too many elements) or ENOMEM (full), with `*bad` at the first request not posted;
  // requests before it are posted.
  int Post(ibv_recv_wr* list, ibv_recv_wr** bad);
  // Posts one receive, without locking out other producers. Only for the consumer, for receives from a shared queue.
  int Post(const ibv_recv_wr& wr);
  uint64_t posted() const { return posted_.load(std::memory_order_acquire); }

  // Consumer.
  //
  // Waits until posts in progress are complete. Producers that begin later see what was stored before the
  // call.
  void AwaitProducers() { const std::lock_guard wait(post_mutex_); }
  struct Entry {
    uint64_t id = 0;
    uint8_t pieces = 0;
  };
  const Entry& entry(uint64_t count) const { return entries_[count % depth_]; }
  const ibv_sge* elements(uint64_t count) const { return &elements_[(count % depth_) * max_sge_]; }
  iovec* memory() { return memory_.get(); }  // of the receive that is being filled
  uint64_t taken = 0;
  uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }
  void Complete() { completed_.store(completed() + 1, std::memory_order_release); }
  void Clear();

 private:
  const uint32_t depth_, max_sge_;
  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<ibv_sge[]> elements_;
  std::unique_ptr<iovec[]> memory_;
  std::atomic<uint64_t> posted_{0};     // as in SendQueue: stored with release, loaded with acquire
  std::atomic<uint64_t> completed_{0};
  SpinLock post_mutex_;  // for producers
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_RECEIVE_QUEUE_H_
