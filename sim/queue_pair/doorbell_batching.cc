#include "sim/queue_pair/doorbell_batching.h"

#include <utility>

namespace weft::sim {

bool DoorbellBatching::Answers(uint64_t completions) {
  took_one_ = std::exchange(completions_, completions) != completions;
  return took_one_ && dense_posts_ == 0;
}

bool DoorbellBatching::Defers(const Post& post, transport::Time now) {
  const bool dense = now - last_post_.load(std::memory_order_relaxed) < kDenseGap;
  last_post_.store(now, std::memory_order_relaxed);
  // Its send queue was full. It polls while it waits, and polling sends what is deferred, so that little is lost should it be done.
  const bool goes_on = took_one_ && dense_posts_ == kDenseEnough && row_ >= kLongRow;
  row_ = dense ? row_ + 1 : 1;
  const bool after_unsignaled = !std::exchange(last_signaled_, post.signaled);
  if (!dense && !goes_on) {
    dense_posts_ = 0;
    Clear();
    return false;
  }
  if (dense_posts_ < kDenseEnough) {
    ++dense_posts_;
    return false;
  }
  const uint32_t deferred = deferred_.load(std::memory_order_relaxed) + 1;
  // Who signals one of many will wait for that one; who will sleep until it completes gets it sent now.
  const bool awaited = post.signaled && (post.may_sleep || (after_unsignaled && deferred >= kLongRow));
  if (post.bytes > kLongestDeferred || awaited || deferred >= kMostDeferred) {
    Clear();
    return false;
  }
  deferred_.store(deferred, std::memory_order_relaxed);
  return true;
}

}  // namespace weft::sim
