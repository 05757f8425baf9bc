#include "sim/queues/receive_queue.h"

#include <cerrno>
#include <cstring>
#include <mutex>

namespace weft::sim {

ReceiveQueue::ReceiveQueue(uint32_t depth, uint32_t max_sge)
    : depth_(depth),
      max_sge_(max_sge),
      entries_(new Entry[depth]),
      elements_(new ibv_sge[size_t{depth} * max_sge]),
      memory_(new iovec[max_sge]) {}

int ReceiveQueue::Post(ibv_recv_wr* list, ibv_recv_wr** bad) {
  std::lock_guard lock(post_mutex_);
  for (; list != nullptr; list = list->next) {
    if (const int error = Post(*list)) {
      *bad = list;
      return error;
    }
  }
  return 0;
}

int ReceiveQueue::Post(const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge_) return EINVAL;
  const uint64_t count = posted_.load(std::memory_order_relaxed);
  if (count - completed_.load(std::memory_order_acquire) >= depth_) return ENOMEM;
  entries_[count % depth_] = {wr.wr_id, static_cast<uint8_t>(wr.num_sge)};
  if (wr.num_sge > 0) {
    std::memcpy(&elements_[(count % depth_) * max_sge_], wr.sg_list, static_cast<size_t>(wr.num_sge) * sizeof(ibv_sge));
  }
  posted_.store(count + 1, std::memory_order_release);
  return 0;
}

void ReceiveQueue::Clear() {
  const uint64_t end = posted();
  taken = end;
  completed_.store(end, std::memory_order_release);
}

}  // namespace weft::sim
