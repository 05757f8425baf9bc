#ifndef SIM_QUEUE_PAIR_DOORBELL_BATCHING_H_
#define SIM_QUEUE_PAIR_DOORBELL_BATCHING_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "transport/network.h"

namespace weft::sim {

// When what a program posts to a send queue goes out: at once, or together with what it posts next. Work requests that are posted back to
// back (the program did nothing else in between) and are small are deferred until kMostDeferred of them are there, the program looks
// for completions, or kFlushAfter goes by. A program that paused only to wait for completions goes on where it was.
//
// The send queue's post mutex guards it, where nothing else is said.
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

  // Whether the program, which has taken `completions` so far, answers one of them: then it waits for answers, what it posts is sent, and
  // reading the clock to find out whether more will follow is time lost. Once for each post.
  bool Answers(uint64_t completions);
  // Of a post that is no answer, after Answers().
  bool Defers(const Post& post, transport::Time now);
  // The program has control back: what it does from now on counts as a pause, not what was done for it. Any thread.
  void Returned(transport::Time now) { last_post_.store(now, std::memory_order_relaxed); }

  // Any thread, without the mutex.
  bool pending() const { return deferred_.load(std::memory_order_relaxed) != 0; }
  // All is sent.
  void Clear() { deferred_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<transport::Time> last_post_{};  // when the program got control back
  std::atomic<uint32_t> deferred_{0};         // written under the mutex
  uint32_t dense_posts_ = 0;                  // in a row, up to kDenseEnough
  uint32_t row_ = 0;                          // posts since the last pause
  uint64_t completions_ = 0;                  // that the program had taken at its last post
  bool took_one_ = false;                     // ... and since
  bool last_signaled_ = false;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_DOORBELL_BATCHING_H_
