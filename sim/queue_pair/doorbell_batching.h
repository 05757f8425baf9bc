#ifndef SIM_QUEUE_PAIR_DOORBELL_BATCHING_H_
#define SIM_QUEUE_PAIR_DOORBELL_BATCHING_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "transport/network.h"

namespace weft::sim {

// Decides when posted send requests are sent: at once, or together with the next ones. Small requests that are posted
// back to back (the program did nothing else in between) are deferred, until there are kMostDeferred of them, the
// program polls for completions, or kFlushAfter has passed. A pause in which the program only waited for completions
// does not end the batching.
//
// Guarded by the send queue's post mutex, unless stated otherwise.
class DoorbellBatching {
 public:
  static constexpr std::chrono::nanoseconds kDenseGap{700};
  static constexpr uint32_t kDenseEnough = 4;         // posts in a row before batching begins
  static constexpr uint32_t kMostDeferred = 64;       // calls of ibv_post_send
  static constexpr uint32_t kLongestDeferred = 1024;  // bytes of one
  static constexpr uint32_t kLongRow = 16;            // posts between two pauses of a program that streams
  static constexpr std::chrono::microseconds kFlushAfter{100};

  struct Post {
    uint64_t bytes = 0;
    bool signaled = false;
    bool may_sleep = false;  // the completions come through a channel
  };

  // Whether the program answers a completion by this post; it has taken `completions` so far. If so, it waits for
  // answers: the post is sent at once, and it would be a waste of time to read the clock to predict more posts. To be
  // called once for each post.
  bool Answers(uint64_t completions);
  // For a post that is no answer; call after Answers().
  bool Defers(const Post& post, transport::Time now);
  // The program has control again: time from now on counts as its pause; the time before was spent in Weft. Any thread.
  void Returned(transport::Time now) { last_post_.store(now, std::memory_order_relaxed); }

  // Any thread; does not need the mutex.
  bool pending() const { return deferred_.load(std::memory_order_relaxed) != 0; }
  // Everything is sent.
  void Clear() { deferred_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<transport::Time> last_post_{};  // when the program got control back
  std::atomic<uint32_t> deferred_{0};         // written under the mutex
  uint32_t dense_posts_ = 0;                  // in a row, up to kDenseEnough
  uint32_t row_ = 0;                          // posts since the last pause
  uint64_t completions_ = 0;                  // completions that the program had taken at its last post
  bool took_one_ = false;                     // ... and whether it took one since
  bool last_signaled_ = false;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_DOORBELL_BATCHING_H_
