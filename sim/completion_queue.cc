#include "sim/completion_queue.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "sim/device.h"
#include "sim/queue_pair.h"

namespace weft::sim {
namespace {

// A queue with more connected queue pairs than this leaves receiving to the progress thread: a system call for each of them
// at every poll would cost more than the thread switch it saves.
constexpr size_t kMostDrivenInline = 16;

}  // namespace

CompletionQueue::CompletionQueue(int entries, std::shared_ptr<CompletionChannel> channel, std::shared_ptr<AsyncSink> async,
                                 void* owner)
    : channel_(std::move(channel)), async_(std::move(async)), owner_(owner), ring_(static_cast<size_t>(entries)) {}

int CompletionQueue::Take(int count, ibv_wc* out) {
  if (queued_.load(std::memory_order_acquire) == 0) return 0;
  std::lock_guard lock(mutex_);
  const size_t queued = queued_.load(std::memory_order_relaxed);
  const size_t taken = std::min(queued, static_cast<size_t>(count));
  for (size_t i = 0; i < taken; ++i) {
    out[i] = ring_[first_];
    if (++first_ == ring_.size()) first_ = 0;
  }
  queued_.store(queued - taken, std::memory_order_release);
  return static_cast<int>(taken);
}

int CompletionQueue::Poll(int count, ibv_wc* out) {
  if (count <= 0) return 0;
  if (int taken = Take(count, out)) return taken;
  DriveQueuePairs();
  return Take(count, out);
}

void CompletionQueue::DriveQueuePairs() {
  std::unique_lock lock(attached_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const bool step_back = attached_.size() <= kMostDrivenInline;
  for (const auto& qp : attached_) qp->DriveInline(step_back);
}

void CompletionQueue::RequestNotify(bool solicited_only) {
  {
    std::lock_guard lock(mutex_);
    // A request for any completion is not weakened by a later one for solicited ones (ibv_req_notify_cq(3)).
    if (!solicited_only) {
      armed_ = Armed::kAny;
    } else if (armed_ == Armed::kNo) {
      armed_ = Armed::kSolicited;
    }
  }
  // The program is about to sleep: the progress thread looks after its connections again.
  std::lock_guard lock(attached_mutex_);
  for (const auto& qp : attached_) qp->EndInlineDriving();
}

int CompletionQueue::Resize(int entries) {
  if (entries < 1 || entries > static_cast<int>(kMaxCqe)) return EINVAL;
  std::lock_guard lock(mutex_);
  const size_t queued = queued_.load(std::memory_order_relaxed);
  if (static_cast<size_t>(entries) < queued) return EINVAL;
  std::vector<ibv_wc> ring(static_cast<size_t>(entries));
  for (size_t i = 0; i < queued; ++i) ring[i] = ring_[(first_ + i) % ring_.size()];
  ring_.swap(ring);
  first_ = 0;
  return 0;
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
    ++kept;
  }
  queued_.store(kept, std::memory_order_release);
}

bool CompletionQueue::Push(const ibv_wc& completion, bool solicited) {
  bool notify = false;
  {
    std::lock_guard lock(mutex_);
    const size_t queued = queued_.load(std::memory_order_relaxed);
    if (queued < ring_.size()) [[likely]] {
      size_t at = first_ + queued;
      if (at >= ring_.size()) at -= ring_.size();
      ring_[at] = completion;
      queued_.store(queued + 1, std::memory_order_release);
      if (armed_ == Armed::kNo) return true;
      notify = armed_ == Armed::kAny || solicited || completion.status != IBV_WC_SUCCESS;
      if (!notify) return true;
      armed_ = Armed::kNo;
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
  LogWarning(Format("completion queue of %d entries overran and lost a completion: poll it more often, or create it with "
                    "at least as many entries as work requests can be outstanding",
                    capacity()));
  if (async_) async_->OnAsyncEvent(IBV_EVENT_CQ_ERR, owner_);
  return false;
}

void CompletionQueue::Attach(std::shared_ptr<QueuePair> qp) {
  std::lock_guard lock(attached_mutex_);
  for (const auto& known : attached_) {
    if (known == qp) return;
  }
  attached_.push_back(std::move(qp));
}

void CompletionQueue::Detach(const QueuePair* qp) {
  std::lock_guard lock(attached_mutex_);
  std::erase_if(attached_, [qp](const auto& known) { return known.get() == qp; });
}

}  // namespace weft::sim
