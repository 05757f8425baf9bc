#ifndef SIM_CONNECTION_COMPLETER_H_
#define SIM_CONNECTION_COMPLETER_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/log.h"
#include "sim/queues/completion_queue.h"
#include "sim/queues/statistics.h"

namespace weft::sim {

// Delivers the completions of one queue pair to completion queues. Guarded by the queue pair's engine.
class Completer {
 public:
  Completer(uint32_t number, QueuePairCounters& counters) : number_(number), counters_(counters) {}

  uint32_t number() const { return number_; }  // of the queue pair
  // While a Hold lives, completions wait, so that the peer gets an acknowledgement first. A program may end as soon as
  // it has its last completion, before anything else of the process runs. Not nested.
  class Hold {
   public:
    explicit Hold(Completer& completer) : completer_(completer) { completer_.holding_ = true; }
    ~Hold() { completer_.Release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Completer& completer_;
  };

  void Push(CompletionQueue& to, const ibv_wc& completion, bool solicited) {
    if (TraceEnabled()) [[unlikely]] TraceIt(completion);
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]] counters_.errors.Add(1);
    if (holding_) return Keep(to, completion, solicited);
    if (!to.Push(completion, solicited)) [[unlikely]] lost_ = true;
  }
  // Whether a completion queue has overrun since the last Clear().
  bool lost() const { return lost_; }
  void Clear() { lost_ = false; }

 private:
  struct Held {
    std::shared_ptr<CompletionQueue> to;
    ibv_wc completion;
    bool solicited;
  };
  // Maximum number of waiting completions; if there are more, all are delivered.
  static constexpr size_t kMostHeld = 256;

  void TraceIt(const ibv_wc& completion) const;
  void Keep(CompletionQueue& to, const ibv_wc& completion, bool solicited);
  void HandOn();
  void Release() {
    holding_ = false;
    if (!held_.empty()) HandOn();
  }

  const uint32_t number_;
  QueuePairCounters& counters_;
  bool lost_ = false;
  bool holding_ = false;
  std::vector<Held> held_;  // in order; the vector keeps its memory
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_COMPLETER_H_
