#ifndef BENCH_COMPLETION_WAITER_H_
#define BENCH_COMPLETION_WAITER_H_

#include <infiniband/verbs.h>

#include <span>

#include "bench/job.h"

namespace weft::bench {

// Waits for completions of one CQ in the way that a job asks for. Throws Failure, also for a completion that is not a
// success.
class CompletionWaiter {
 public:
  // Wait::kEvent: `cq` has a completion channel of its own.
  CompletionWaiter(ibv_cq* cq, Wait wait) : cq_(cq), sleeps_(wait == Wait::kEvent) {
    if (sleeps_) Arm();
  }

  // The completions that are there now, perhaps none.
  std::span<const ibv_wc> Poll() {
    const int count = ibv_poll_cq(cq_, kMost, completions_);
    if (count < 0) throw Failure("ibv_poll_cq failed");
    for (int i = 0; i < count; ++i) {
      if (completions_[i].status != IBV_WC_SUCCESS) {
        throw Failure(std::string("completion: ") + ibv_wc_status_str(completions_[i].status));
      }
    }
    return {completions_, static_cast<size_t>(count)};
  }

  // At least one completion.
  std::span<const ibv_wc> Take() {
    for (;;) {
      // After an armed CQ was polled empty, no further poll is needed before the sleep: any later completion has made
      // an event.
      if (!sleeps_ || !known_empty_) {
        const auto found = Poll();
        known_empty_ = found.size() < kMost;
        if (!found.empty()) return found;
        if (!sleeps_) continue;
      }
      Sleep();
      known_empty_ = false;
    }
  }

 private:
  static constexpr int kMost = 16;

  void Arm() {
    if (const int error = ibv_req_notify_cq(cq_, 0)) Fail("ibv_req_notify_cq", error);
  }

  void Sleep() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(cq_->channel, &cq, &context) != 0) Fail("ibv_get_cq_event", errno);
    ibv_ack_cq_events(cq, 1);
    Arm();
  }

  ibv_cq* const cq_;
  const bool sleeps_;
  bool known_empty_ = false;
  ibv_wc completions_[kMost];
};

}  // namespace weft::bench

#endif  // BENCH_COMPLETION_WAITER_H_
