#ifndef SIM_QUEUES_COMPLETION_QUEUE_H_
#define SIM_QUEUES_COMPLETION_QUEUE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/spin_lock.h"
#include "sim/queues/async_sink.h"
#include "sim/queues/event_queue.h"
#include "transport/network.h"

namespace weft::sim {

class AnyQueuePair;
class CompletionQueue;
struct Errand;

// ibv_comp_channel: completion queues that asked for notification, in order. Elements are the owner pointers (ibv_cq*).
using CompletionChannel = EventQueue<void*>;

// A completion queue: a ring of ibv_wc. Polling it when it is empty drives the connections of its queue pairs from the
// caller's thread (design section 3, "Polling works inline"): each of a few; of many, those that one system call says are ready, and those
// that said that they have something to do. Thread safe.
class CompletionQueue : public std::enable_shared_from_this<CompletionQueue> {
 public:
  struct Features {
    bool timestamps = false;      // each completion is stamped when it is pushed
    bool ignore_overrun = false;  // IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: a full queue loses its oldest completion, silently
  };
  // `entries`: capacity. `channel` may be null. `owner`: reported on channel and in async events.
  CompletionQueue(int entries, std::shared_ptr<CompletionChannel> channel, std::shared_ptr<AsyncSink> async, void* owner,
                  Features features);
  CompletionQueue(int entries, std::shared_ptr<CompletionChannel> channel, std::shared_ptr<AsyncSink> async, void* owner)
      : CompletionQueue(entries, std::move(channel), std::move(async), owner, Features{}) {}

  // Up to `count` completions into `out`; how many. Never negative. With timestamps, `stamps` gets as many: nanoseconds of
  // CLOCK_MONOTONIC.
  int Poll(int count, ibv_wc* out, uint64_t* stamps = nullptr);
  // The same, of what is in the queue already.
  int Take(int count, ibv_wc* out, uint64_t* stamps = nullptr);
  // One notification for the next completion (`solicited_only`: that is solicited or in error).
  void RequestNotify(bool solicited_only);
  // Event moderation: an event for `count` completions, or `period` after the first of them. Completions in error are told of at
  // once. No moderation if `count` is 0 or 1 or `period` is 0.
  void Moderate(uint16_t count, std::chrono::microseconds period);
  // Keeps every completion. EINVAL: `entries` is below what is queued now, or not in 1 .. kMaxCqe.
  int Resize(int entries);
  int capacity() const;
  // No event names the owner from here on. No queue pair uses it any more.
  void Retire();
  // Nothing waits to be polled.
  bool empty() const { return queued_.load(std::memory_order_acquire) == 0; }
  // Completions polled so far.
  uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // Drops a queue pair's completions (when it is destroyed or reset).
  void Forget(uint32_t qp_num);

  // For queue pairs. `solicited` matters only for successes. A full queue is an overrun: IBV_EVENT_CQ_ERR, and false.
  bool Push(const ibv_wc& completion, bool solicited);
  // A queue pair whose network polls drive. `watch`: of its stream or socket. `errand`: the queue pair's own, or null if it has none.
  void Attach(std::shared_ptr<AnyQueuePair> qp, transport::WatchId watch, Errand* errand = nullptr);
  void Detach(const AnyQueuePair* qp);
  // With few queue pairs an empty poll looks at each, and nobody need say what there is to do.
  bool takes_errands() const { return takes_errands_.load(std::memory_order_relaxed); }
  // The next poll that finds nothing calls RunErrand(), or the network's thread after a while (below a millisecond and a half);
  // RequestNotify() calls FlushDeferred(). With any lock of the queue pair.
  void AddErrand(Errand& errand);

  void* owner() const { return owner_; }
  const std::shared_ptr<CompletionChannel>& channel() const { return channel_; }

  // Queue pairs that use it (ibv_destroy_cq is EBUSY while there are any).
  std::atomic<int> users{0};

 private:
  enum class Armed : uint8_t { kNo, kSolicited, kAny };

  // With mutex_ held: whether an event is due for a completion that was asked for; `*arm`: a timer is to be set for it.
  bool EventIsDue(bool error, bool* arm);
  void ArmModerationTimer();
  void OnModerationTimer();
  // Moves what the connections of its queue pairs have; whether the whole network is to be driven too.
  bool DriveQueuePairs();
  // Waits for attached_mutex_ and holds it. No poll takes it meanwhile: a program that spins would have it again before the thread that waits is awake.
  class AttachedLock;
  // With attached_mutex_ held.
  void MakeGroup();
  Errand* TakeErrands();
  void RunErrands(Errand* list);
  void Unlist(const Errand& errand);
  // Without.
  void ArmErrandTimer(std::chrono::microseconds after);
  void OnErrandTimer(std::chrono::microseconds after, uint32_t turns_before);

  const std::shared_ptr<CompletionChannel> channel_;
  const std::shared_ptr<AsyncSink> async_;
  void* const owner_;
  const Features features_;

  Mutex announce_mutex_;    // held while the moderation timer tells of an event, for Retire(); taken before mutex_
  mutable SpinLock mutex_;  // guards what follows; a leaf
  std::vector<ibv_wc> ring_;
  std::vector<uint64_t> stamps_;   // parallel to ring_; empty without timestamps
  size_t first_ = 0;
  std::atomic<size_t> queued_{0};   // written under the mutex; polls look at it before they take that
  std::atomic<uint64_t> taken_{0};  // written under the mutex
  Armed armed_ = Armed::kNo;
  uint64_t pushed_ = 0;            // completions ever
  uint64_t announced_ = 0;         // the completion before this count was the last that an event told of
  bool overrun_ = false;
  uint16_t moderate_count_ = 0;    // 0: no moderation
  uint16_t moderated_ = 0;         // completions since the last event
  bool moderation_timer_armed_ = false;
  std::chrono::microseconds moderate_period_{0};

  struct Attached {
    std::shared_ptr<AnyQueuePair> queue_pair;
    transport::WatchId watch;
    Errand* errand;
  };
  // Queue pairs that have a socket, driven when a poll finds nothing. Taken with try_lock in Poll: one driver is enough. Taken before the
  // queue pairs' locks. It is held over system calls, so that a thread that has to wait for it sleeps: one of real-time priority that spun would
  // keep the holder off the processor for good.
  Mutex attached_mutex_;  // guards what follows
  std::atomic<uint32_t> attached_waiters_{0};  // threads in the constructor of AttachedLock; a hint to polls
  std::vector<Attached> attached_;
  // Has the watches of all of them once a program spun on more than a few.
  std::unique_ptr<transport::WatchGroup> group_;
  uint32_t empty_polls_ = 0;       // in a row
  uint32_t unconnected_polls_ = 0;
  transport::Time empty_since_{};  // when the row began
  uint32_t until_network_ = 0;     // polls until the network is driven again
  uint32_t network_every_ = 1;
  std::atomic<bool> lively_{false};  // a poll found something since the last look at the network
  // Of its queue pairs, once there is one. Stored with release under attached_mutex_, which polls have held; others load it with acquire.
  std::atomic<transport::Network*> network_{nullptr};

  std::atomic<bool> takes_errands_{false};
  SpinLock errands_mutex_;  // guards the list and errand_timer_armed_; a leaf
  std::atomic<Errand*> errands_{nullptr};
  bool errand_timer_armed_ = false;
  std::atomic<uint32_t> errand_turns_{0};  // polls that took the list; written with attached_mutex_ held
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_COMPLETION_QUEUE_H_
