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

// ibv_comp_channel: completion queues that asked for a notification, in order. Elements are the owner pointers
// (ibv_cq*).
using CompletionChannel = EventQueue<void*>;

// A completion queue: a ring of ibv_wc. An empty poll drives the connections of its queue pairs from the caller's
// thread (docs/architecture.md). With few queue pairs it looks at each; with many, at those that one system call
// reports as ready and those that have asked for it. Thread safe.
class CompletionQueue : public std::enable_shared_from_this<CompletionQueue> {
 public:
  struct Features {
    bool timestamps = false;      // each completion is stamped when it is pushed
    // IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: a full queue silently loses its oldest completion
    bool ignore_overrun = false;
  };
  // `entries`: capacity. `channel` may be null. `owner`: reported on the channel and in async events.
  CompletionQueue(int entries, std::shared_ptr<CompletionChannel> channel, std::shared_ptr<AsyncSink> async, void* owner,
                  Features features);
  CompletionQueue(int entries, std::shared_ptr<CompletionChannel> channel, std::shared_ptr<AsyncSink> async, void* owner)
      : CompletionQueue(entries, std::move(channel), std::move(async), owner, Features{}) {}

  // Moves up to `count` completions into `out`. Returns how many, never a negative number. With timestamps, also fills
  // `stamps`: nanoseconds of CLOCK_MONOTONIC.
  int Poll(int count, ibv_wc* out, uint64_t* stamps = nullptr);
  // The same, but only for completions that are already in the queue.
  int Take(int count, ibv_wc* out, uint64_t* stamps = nullptr);
  // Asks for one notification for the next completion; with `solicited_only`, for the next one that is solicited or in
  // error.
  void RequestNotify(bool solicited_only);
  // Event moderation: an event after `count` completions, or `period` after the first of them. Completions in error are
  // reported at once. There is no moderation if `count` is 0 or 1 or `period` is 0.
  void Moderate(uint16_t count, std::chrono::microseconds period);
  // Keeps every completion. EINVAL: `entries` is less than the number queued now, or not in 1 .. kMaxCqe.
  int Resize(int entries);
  int capacity() const;
  // After return, no event names the owner. No queue pair may use the completion queue any more.
  void Retire();
  // There is nothing to poll.
  bool empty() const { return queued_.load(std::memory_order_acquire) == 0; }
  // Completions polled so far.
  uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // Drops the completions of a queue pair that is destroyed or reset.
  void Forget(uint32_t qp_num);

  // For queue pairs. `solicited` matters only for successes. If the queue is full, reports IBV_EVENT_CQ_ERR and returns
  // false.
  bool Push(const ibv_wc& completion, bool solicited);
  // Adds a queue pair whose network polls drive. `watch`: of its stream or socket. `errand`: the queue pair's own, or
  // null.
  void Attach(std::shared_ptr<AnyQueuePair> qp, transport::WatchId watch, Errand* errand = nullptr);
  void Detach(const AnyQueuePair* qp);
  // With few queue pairs an empty poll looks at each of them, so none has to ask.
  bool takes_errands() const { return takes_errands_.load(std::memory_order_relaxed); }
  // The next poll that finds nothing calls RunErrand(); otherwise the network's thread does, after less than 1.5 ms.
  // RequestNotify() calls FlushDeferred(). May be called with any lock of the queue pair.
  void AddErrand(Errand& errand);

  void* owner() const { return owner_; }
  const std::shared_ptr<CompletionChannel>& channel() const { return channel_; }

  // Queue pairs that use it (ibv_destroy_cq returns EBUSY if there are any).
  std::atomic<int> users{0};

 private:
  enum class Armed : uint8_t { kNo, kSolicited, kAny };

  // Requires mutex_. Returns whether an event is due for a completion that was asked for. Sets `*arm` if a timer must
  // be set for it.
  bool EventIsDue(bool error, bool* arm);
  void ArmModerationTimer();
  void OnModerationTimer();
  // Moves the data of the connections of its queue pairs. Returns whether the whole network must be driven, too.
  bool DriveQueuePairs();
  // Waits for attached_mutex_ and holds it. Polls do not take the mutex meanwhile: a spinning program would take it
  // again before the waiting thread is awake.
  class AttachedLock;
  // Requires attached_mutex_.
  void MakeGroup();
  Errand* TakeErrands();
  void RunErrands(Errand* list);
  void Unlist(const Errand& errand);
  // Does not require it.
  void ArmErrandTimer(std::chrono::microseconds after);
  void OnErrandTimer(std::chrono::microseconds after, uint32_t turns_before);

  const std::shared_ptr<CompletionChannel> channel_;
  const std::shared_ptr<AsyncSink> async_;
  void* const owner_;
  const Features features_;

  Mutex announce_mutex_;    // held while the moderation timer reports an event, for Retire(); locked before mutex_
  mutable SpinLock mutex_;  // guards the members below; a leaf
  std::vector<ibv_wc> ring_;
  std::vector<uint64_t> stamps_;   // parallel to ring_; empty without timestamps
  size_t first_ = 0;
  std::atomic<size_t> queued_{0};   // written under the mutex; polls read it before they lock that
  std::atomic<uint64_t> taken_{0};  // written under the mutex
  Armed armed_ = Armed::kNo;
  uint64_t pushed_ = 0;            // completions in total
  uint64_t announced_ = 0;         // the last completion that an event has reported is the one before this count
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
  // Queue pairs that have a socket. A poll that finds nothing drives them; Poll uses try_lock, since one driver is
  // enough. Locked before the queue pairs' locks. It is held over system calls, so a waiting thread sleeps: a spinning
  // thread of real-time priority could keep the holder off the processor for ever.
  Mutex attached_mutex_;  // guards the members below
  std::atomic<uint32_t> attached_waiters_{0};  // threads in the constructor of AttachedLock; a hint to polls
  std::vector<Attached> attached_;
  // Has the watches of all queue pairs, once a program has spun on more than a few.
  std::unique_ptr<transport::WatchGroup> group_;
  uint32_t empty_polls_ = 0;       // in a row
  uint32_t unconnected_polls_ = 0;
  transport::Time empty_since_{};  // when the row began
  uint32_t until_network_ = 0;     // polls until the network is driven again
  uint32_t network_every_ = 1;
  std::atomic<bool> lively_{false};  // a poll has found something since the last look at the network
  // The network of its queue pairs, once there is one. Stored with release under attached_mutex_, which polls hold;
  // other threads load it with acquire.
  std::atomic<transport::Network*> network_{nullptr};

  std::atomic<bool> takes_errands_{false};
  SpinLock errands_mutex_;  // guards the list and errand_timer_armed_; a leaf
  std::atomic<Errand*> errands_{nullptr};
  bool errand_timer_armed_ = false;
  std::atomic<uint32_t> errand_turns_{0};  // polls that processed the list; written with attached_mutex_ held
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_COMPLETION_QUEUE_H_
