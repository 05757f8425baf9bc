#include "sim/queues/shared_receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "sim/device/limits.h"

namespace weft::sim {

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<Pd> pd, uint32_t number, uint32_t max_wr, uint32_t max_sge,
                                       std::shared_ptr<AsyncSink> async, void* owner, std::shared_ptr<CompletionQueue> completions)
    : pd_(std::move(pd)),
      number_(number),
      max_sge_(max_sge),
      async_(std::move(async)),
      owner_(owner),
      completions_(std::move(completions)),
      ring_(max_wr, max_sge) {}

int SharedReceiveQueue::Post(ibv_recv_wr* list, ibv_recv_wr** bad) {
  std::lock_guard lock(mutex_);
  for (; list != nullptr; list = list->next) {
    const bool fits = list->num_sge >= 0 && static_cast<uint32_t>(list->num_sge) <= max_sge_;
    if (!fits || queued_ == ring_.depth) {
      *bad = list;
      return fits ? ENOMEM : EINVAL;
    }
    uint32_t at = first_ + queued_;
    if (at >= ring_.depth) at -= ring_.depth;
    ring_.entries[at] = {list->wr_id, static_cast<uint8_t>(list->num_sge)};
    if (list->num_sge > 0) {
      std::memcpy(ring_.elements.get() + size_t{at} * max_sge_, list->sg_list, static_cast<size_t>(list->num_sge) * sizeof(ibv_sge));
    }
    ++queued_;
  }
  return 0;
}

int SharedReceiveQueue::Modify(const ibv_srq_attr& attributes, int mask) {
  if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) return EINVAL;
  const bool resize = mask & IBV_SRQ_MAX_WR;
  if (resize && (attributes.max_wr < 1 || attributes.max_wr > kMaxSrqWr)) return EINVAL;
  Ring other(resize ? attributes.max_wr : 0, max_sge_);  // made, and the old one let go, without the lock
  std::lock_guard lock(mutex_);
  if (resize && attributes.max_wr < queued_) return EINVAL;
  if ((mask & IBV_SRQ_LIMIT) && attributes.srq_limit > (resize ? attributes.max_wr : ring_.depth)) return EINVAL;
  if (resize) {
    for (uint32_t i = 0; i < queued_; ++i) {
      const uint32_t from = (first_ + i) % ring_.depth;
      other.entries[i] = ring_.entries[from];
      std::copy_n(ring_.elements.get() + size_t{from} * max_sge_, ring_.entries[from].pieces, other.elements.get() + size_t{i} * max_sge_);
    }
    std::swap(ring_, other);
    first_ = 0;
  }
  if (mask & IBV_SRQ_LIMIT) limit_ = attributes.srq_limit;
  return 0;
}

ibv_srq_attr SharedReceiveQueue::Query() const {
  std::lock_guard lock(mutex_);
  return {ring_.depth, max_sge_, limit_};
}

bool SharedReceiveQueue::BelowLimit() { return queued_ < limit_ && std::exchange(limit_, 0) != 0; }

bool SharedReceiveQueue::Take(ibv_recv_wr* wr, ibv_sge* elements) {
  std::lock_guard lock(mutex_);
  const bool taken = queued_ > 0;
  if (taken) {
    const Entry& entry = ring_.entries[first_];
    std::copy_n(ring_.elements.get() + size_t{first_} * max_sge_, entry.pieces, elements);
    *wr = {.wr_id = entry.id, .next = nullptr, .sg_list = elements, .num_sge = entry.pieces};
    if (++first_ == ring_.depth) first_ = 0;
    --queued_;
  }
  // With the lock: once Close() returned nobody speaks of the owner.
  if (BelowLimit() && async_) async_->OnAsyncEvent(IBV_EVENT_SRQ_LIMIT_REACHED, owner_);
  return taken;
}

void SharedReceiveQueue::Close() {
  std::lock_guard lock(mutex_);
  queued_ = limit_ = 0;
}

}  // namespace weft::sim
