#include "sim/queues/completion_queue.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "base/log.h"
#include "faults/injector.h"
#include "sim/queues/any_queue_pair.h"
#include "sim/device/limits.h"

namespace weft::sim {
namespace {

// With more connected queue pairs than this a system call for each at every poll would cost more than asking which of them is ready.
constexpr size_t kMostDrivenDirectly = 4;
// A program that found nothing so many times in a row, and that fast, spins: its thread then drives the whole network, in place
// of the progress thread, which would compete with it for a processor.
constexpr uint32_t kPollsUntilSpinning = 16;
constexpr std::chrono::milliseconds kSpinningWithin{1};
// A program that does not poll after all leaves its queue pairs' errands to the network's thread after so long. One that always polls in
// time makes every look of the timer a waste.
constexpr std::chrono::microseconds kErrandsAfter{200};
constexpr std::chrono::microseconds kLongestErrandTick{1000};
// At which of its polls it looks at the rest of the network, while that has nothing to do: seldom, or more seldom while its own queue pairs
// have something to do, as a look makes their next message wait.
constexpr uint32_t kSeldom = 4, kVerySeldom = 16;
// A program that polls while none of its queue pairs is connected waits for the network's thread, which may wait for this very processor: it
// yields it once in so many polls.
constexpr uint32_t kPollsBeforeYield = 32;

// Nanoseconds of the clock of ibv_query_rt_values_ex.
uint64_t Stamp() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// From here on what its queue pair finds to do makes it be added again.
Errand& TakeFirst(Errand** list) {
  Errand& first = *std::exchange(*list, (*list)->next);
  first.listed.exchange(false, std::memory_order_acq_rel);
  return first;
}

}  // namespace

class CompletionQueue::AttachedLock {
 public:
  explicit AttachedLock(CompletionQueue& queue) : queue_(queue) {
    queue_.attached_waiters_.fetch_add(1, std::memory_order_relaxed);
    queue_.attached_mutex_.lock();
    queue_.attached_waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
  ~AttachedLock() { queue_.attached_mutex_.unlock(); }
  AttachedLock(const AttachedLock&) = delete;
  AttachedLock& operator=(const AttachedLock&) = delete;

 private:
  CompletionQueue& queue_;
};

CompletionQueue::CompletionQueue(int entries, std::shared_ptr<CompletionChannel> channel, std::shared_ptr<AsyncSink> async,
                                 void* owner, Features features)
    : channel_(std::move(channel)),
      async_(std::move(async)),
      owner_(owner),
      features_(features),
      ring_(static_cast<size_t>(entries)),
      stamps_(features.timestamps ? static_cast<size_t>(entries) : 0) {}

int CompletionQueue::Take(int count, ibv_wc* out, uint64_t* stamps) {
  if (queued_.load(std::memory_order_acquire) == 0) return 0;
  std::lock_guard lock(mutex_);
  const size_t queued = queued_.load(std::memory_order_relaxed);
  const size_t taken = std::min(queued, static_cast<size_t>(count));
  const size_t size = ring_.size();
  for (size_t i = 0; i < taken; ++i) {
    out[i] = ring_[first_];
    if (stamps != nullptr) [[unlikely]] stamps[i] = stamps_[first_];
    if (++first_ == size) first_ = 0;
  }
  queued_.store(queued - taken, std::memory_order_release);
  taken_.store(taken_.load(std::memory_order_relaxed) + taken, std::memory_order_relaxed);
  return static_cast<int>(taken);
}

int CompletionQueue::Poll(int count, ibv_wc* out, uint64_t* stamps) {
  if (count <= 0) return 0;
  if (int taken = Take(count, out, stamps)) return taken;
  const bool drive_network = DriveQueuePairs();
  if (int taken = Take(count, out, stamps)) {
    lively_.store(true, std::memory_order_relaxed);
    return taken;
  }
  if (!drive_network) return 0;
  const bool busy = network_.load(std::memory_order_relaxed)->DriveInline();
  {
    std::unique_lock lock(attached_mutex_, std::try_to_lock);
    if (lock.owns_lock()) {
      const uint32_t seldom = lively_.exchange(false, std::memory_order_relaxed) ? kVerySeldom : kSeldom;
      network_every_ = busy ? 1 : std::min(network_every_ * 2, seldom);
      until_network_ = network_every_;
    }
  }
  return Take(count, out, stamps);
}

bool CompletionQueue::DriveQueuePairs() {
  if (attached_waiters_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    sched_yield();
    return false;
  }
  std::unique_lock lock(attached_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (attached_.empty()) [[unlikely]] {
    const bool yields = ++unconnected_polls_ % kPollsBeforeYield == 0 && users.load(std::memory_order_relaxed) != 0;
    lock.unlock();
    if (yields) sched_yield();
    return false;
  }
  const bool spinning = empty_polls_ == kPollsUntilSpinning;
  const bool directly = attached_.size() <= kMostDrivenDirectly;
  if (directly) {
    for (const Attached& attached : attached_) attached.queue_pair->DriveInline(spinning);
    if (group_ != nullptr && spinning) group_->Lend();
  } else {
    Errand* const errands = TakeErrands();  // what comes now adds some for the next poll
    if (errands != nullptr) errand_turns_.store(errand_turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (group_ != nullptr) group_->Drive(spinning);
    RunErrands(errands);
  }
  if (!spinning) {
    transport::Network& network = *network_.load(std::memory_order_relaxed);
    if (empty_polls_ == 0) empty_since_ = network.Now();
    if (++empty_polls_ < kPollsUntilSpinning) return false;
    if (network.Now() - empty_since_ > kSpinningWithin) {
      empty_polls_ = 0;
    } else if (!directly) {
      MakeGroup();
    }
    return false;
  }
  if (!directly && group_ == nullptr) return true;
  return until_network_ == 0 || --until_network_ == 0;
}

// Not before a program spins: others need no descriptor for it.
void CompletionQueue::MakeGroup() {
  if (group_ != nullptr) return;
  group_ = network_.load(std::memory_order_relaxed)->MakeGroup();
  if (group_ == nullptr) return;
  for (const Attached& attached : attached_) group_->Add(attached.watch);
}

void CompletionQueue::AddErrand(Errand& errand) {
  if (errand.listed.exchange(true, std::memory_order_acq_rel)) return;
  bool arm;
  {
    std::lock_guard lock(errands_mutex_);
    if (errand.queue_pair == nullptr) {
      errand.listed.store(false, std::memory_order_relaxed);
      return;
    }
    errand.next = errands_.load(std::memory_order_relaxed);
    errands_.store(&errand, std::memory_order_relaxed);
    arm = !std::exchange(errand_timer_armed_, true);
  }
  if (arm) ArmErrandTimer(kErrandsAfter);
}

void CompletionQueue::ArmErrandTimer(std::chrono::microseconds after) {
  transport::Network& network = *network_.load(std::memory_order_relaxed);
  network.RunAt(network.Now() + after, [weak = weak_from_this(), after, turns = errand_turns_.load(std::memory_order_relaxed)] {
    if (auto self = weak.lock()) self->OnErrandTimer(after, turns);
  });
}

void CompletionQueue::OnErrandTimer(std::chrono::microseconds after, uint32_t turns_before) {
  std::unique_lock lock(attached_mutex_, std::try_to_lock);
  const bool polled = !lock.owns_lock() || errand_turns_.load(std::memory_order_relaxed) != turns_before;
  if (polled) return ArmErrandTimer(std::min(2 * after, kLongestErrandTick));
  Errand* errands;
  {
    std::lock_guard list(errands_mutex_);  // what is added from here on arms the timer anew
    errand_timer_armed_ = false;
    errands = errands_.exchange(nullptr, std::memory_order_relaxed);
  }
  RunErrands(errands);
}

void CompletionQueue::RunErrands(Errand* list) {
  while (list != nullptr) {
    Errand& errand = TakeFirst(&list);
    if (!errand.queue_pair->RunErrand()) AddErrand(errand);
  }
}

Errand* CompletionQueue::TakeErrands() {
  if (errands_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  std::lock_guard lock(errands_mutex_);
  return errands_.exchange(nullptr, std::memory_order_relaxed);
}

void CompletionQueue::RequestNotify(bool solicited_only) {
  bool notify = false;
  {
    std::lock_guard lock(mutex_);
    const size_t queued = queued_.load(std::memory_order_relaxed);
    // Completions that came after the one that the last event told of, and are not polled yet, are told of at once, as adapters
    // do that compare the consumer's index: perftest polls a few and sleeps again.
    notify = !solicited_only && channel_ != nullptr && queued > 0 && pushed_ > announced_;
    if (notify) announced_ = pushed_ - queued + 1;
    // A request for any completion is not weakened by a later one for solicited ones (ibv_req_notify_cq(3)).
    if (notify) {
      armed_ = Armed::kNo;
    } else if (!solicited_only) {
      armed_ = Armed::kAny;
    } else if (armed_ == Armed::kNo) {
      armed_ = Armed::kSolicited;
    }
  }
  if (notify) channel_->Push(owner_);
  // The program is about to sleep: what it posted goes out now, and the network's thread looks after its connections.
  const AttachedLock lock(*this);
  if (attached_.size() <= kMostDrivenDirectly) {
    for (const Attached& attached : attached_) attached.queue_pair->FlushDeferred();
  } else {
    for (Errand* list = TakeErrands(); list != nullptr;) {
      Errand& errand = TakeFirst(&list);
      errand.queue_pair->FlushDeferred();
      AddErrand(errand);  // what else it has waits for a poll
    }
  }
  if (std::exchange(empty_polls_, 0) != kPollsUntilSpinning) return;
  network_.load(std::memory_order_relaxed)->EndDrive();
  if (attached_.size() > kMostDrivenDirectly) return;
  for (const Attached& attached : attached_) attached.queue_pair->EndDrive();
}

int CompletionQueue::Resize(int entries) {
  if (entries < 1 || entries > static_cast<int>(kMaxCqe)) return EINVAL;
  // Made, and the old ones let go, without the lock.
  std::vector<ibv_wc> ring(static_cast<size_t>(entries));
  std::vector<uint64_t> stamps(features_.timestamps ? ring.size() : 0);
  std::lock_guard lock(mutex_);
  const size_t queued = queued_.load(std::memory_order_relaxed);
  if (ring.size() < queued) return EINVAL;
  for (size_t i = 0; i < queued; ++i) {
    const size_t from = (first_ + i) % ring_.size();
    ring[i] = ring_[from];
    if (features_.timestamps) stamps[i] = stamps_[from];
  }
  ring_.swap(ring);
  stamps_.swap(stamps);
  first_ = 0;
  return 0;
}

void CompletionQueue::Moderate(uint16_t count, std::chrono::microseconds period) {
  std::lock_guard lock(mutex_);
  moderate_count_ = count > 1 && period.count() > 0 ? count : 0;
  moderate_period_ = period;
}

int CompletionQueue::capacity() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(ring_.size());
}

void CompletionQueue::Forget(uint32_t qp_num) {
  std::lock_guard lock(mutex_);
  const size_t queued = queued_.load(std::memory_order_relaxed);
  size_t kept = 0;
  for (size_t i = 0; i < queued; ++i) {
    const ibv_wc& completion = ring_[(first_ + i) % ring_.size()];
    if (completion.qp_num == qp_num) continue;
    ring_[(first_ + kept) % ring_.size()] = completion;
    if (features_.timestamps) stamps_[(first_ + kept) % ring_.size()] = stamps_[(first_ + i) % ring_.size()];
    ++kept;
  }
  queued_.store(kept, std::memory_order_release);
}

namespace {

bool OverrunAsked(const ibv_wc& completion) {
  return faults::Injector::Process()
      .Ask(faults::Kind::kCqOverrun, {.qp = completion.qp_num}, Format("qp 0x%x: its completion queue overruns", completion.qp_num))
      .has_value();
}

}  // namespace

bool CompletionQueue::Push(const ibv_wc& completion, bool solicited) {
  const bool full = faults::Enabled(faults::Kind::kCqOverrun) && OverrunAsked(completion);
  bool notify = false, arm = false;
  {
    std::lock_guard lock(mutex_);
    const size_t size = ring_.size();
    size_t queued = queued_.load(std::memory_order_relaxed);
    if (queued == size && features_.ignore_overrun) [[unlikely]] {
      if (++first_ == size) first_ = 0;
      --queued;
    }
    if (queued < size && !full) [[likely]] {
      size_t at = first_ + queued;
      if (at >= size) at -= size;
      ring_[at] = completion;
      if (features_.timestamps) stamps_[at] = Stamp();
      queued_.store(queued + 1, std::memory_order_release);
      ++pushed_;
      if (armed_ == Armed::kNo) return true;
      const bool error = completion.status != IBV_WC_SUCCESS;
      notify = (armed_ == Armed::kAny || solicited || error) && EventIsDue(error, &arm);
      if (!notify && !arm) return true;
    } else if (overrun_) {
      return false;  // reported already
    } else {
      overrun_ = true;
    }
  }
  if (notify) {
    if (channel_) channel_->Push(owner_);
    return true;
  }
  if (arm) {
    ArmModerationTimer();
    return true;
  }
  LogWarning(Format("completion queue of %d entries overran and lost a completion: poll it more often, or create it with "
                    "at least as many entries as work requests can be outstanding",
                    capacity()));
  if (async_) async_->OnAsyncEvent(IBV_EVENT_CQ_ERR, owner_);
  return false;
}

bool CompletionQueue::EventIsDue(bool error, bool* arm) {
  const bool moderated = moderate_count_ != 0 && network_.load(std::memory_order_acquire) != nullptr;
  if (moderated && !error && ++moderated_ < moderate_count_) [[unlikely]] {
    *arm = !std::exchange(moderation_timer_armed_, true);
    return false;
  }
  moderated_ = 0;
  armed_ = Armed::kNo;
  announced_ = pushed_;
  return true;
}

void CompletionQueue::ArmModerationTimer() {
  transport::Network& network = *network_.load(std::memory_order_acquire);
  network.RunAt(network.Now() + moderate_period_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->OnModerationTimer();
  });
}

void CompletionQueue::OnModerationTimer() {
  std::lock_guard announcing(announce_mutex_);  // once Retire() returned nobody speaks of the owner
  {
    std::lock_guard lock(mutex_);
    moderation_timer_armed_ = false;
    if (std::exchange(moderated_, 0) == 0 || armed_ == Armed::kNo) return;
    armed_ = Armed::kNo;
    announced_ = pushed_;
  }
  if (channel_) channel_->Push(owner_);
}

void CompletionQueue::Retire() {
  std::lock_guard announcing(announce_mutex_);
  std::lock_guard lock(mutex_);
  armed_ = Armed::kNo;
  moderate_count_ = 0;
}

void CompletionQueue::Attach(std::shared_ptr<AnyQueuePair> qp, transport::WatchId watch, Errand* errand) {
  const AttachedLock lock(*this);
  network_.store(&qp->network(), std::memory_order_release);
  const auto known = std::find_if(attached_.begin(), attached_.end(), [&](const Attached& one) { return one.queue_pair == qp; });
  if (known != attached_.end()) {
    known->watch = watch;  // of a new connection
  } else {
    if (errand != nullptr) {
      std::lock_guard errands(errands_mutex_);
      errand->queue_pair = qp.get();
    }
    attached_.push_back({std::move(qp), watch, errand});
  }
  takes_errands_.store(attached_.size() > kMostDrivenDirectly, std::memory_order_relaxed);
  if (group_ != nullptr) {
    group_->Add(watch);
  } else if (empty_polls_ == kPollsUntilSpinning && attached_.size() > kMostDrivenDirectly) {
    MakeGroup();  // it spun when there were few
  }
}

// With errands_mutex_ held, too.
void CompletionQueue::Unlist(const Errand& errand) {
  Errand* before = errands_.load(std::memory_order_relaxed);
  if (before == &errand) return errands_.store(errand.next, std::memory_order_relaxed);
  while (before != nullptr && before->next != &errand) before = before->next;
  if (before != nullptr) before->next = errand.next;
}

void CompletionQueue::Detach(const AnyQueuePair* qp) {
  std::shared_ptr<AnyQueuePair> last;  // let go of after the lock
  const AttachedLock lock(*this);
  const auto known = std::find_if(attached_.begin(), attached_.end(), [&](const Attached& one) { return one.queue_pair.get() == qp; });
  if (known == attached_.end()) return;
  if (Errand* const errand = known->errand; errand != nullptr) {
    std::lock_guard errands(errands_mutex_);
    errand->queue_pair = nullptr;
    if (errand->listed.exchange(false, std::memory_order_relaxed)) Unlist(*errand);
  }
  last = std::move(known->queue_pair);
  *known = std::move(attached_.back());
  attached_.pop_back();
  takes_errands_.store(attached_.size() > kMostDrivenDirectly, std::memory_order_relaxed);
}

}  // namespace weft::sim
