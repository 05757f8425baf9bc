#ifndef SIM_CONNECTION_COMPLETER_H_
#define SIM_CONNECTION_COMPLETER_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "base/log.h"
#include "sim/queues/completion_queue.h"
#include "sim/queues/statistics.h"

namespace weft::sim {

// Hands completions of one queue pair to completion queues. Guarded by the queue pair's engine.
class Completer {
 public:
  Completer(uint32_t number, QueuePairCounters& counters) : number_(number), counters_(counters) {}

  uint32_t number() const { return number_; }  // of the queue pair
  void Push(CompletionQueue& to, const ibv_wc& completion, bool solicited) {
    if (TraceEnabled()) [[unlikely]] TraceIt(completion);
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]] counters_.errors.Add(1);
    if (!to.Push(completion, solicited)) [[unlikely]] lost_ = true;
  }
  // A completion queue overran since the last Clear().
  bool lost() const { return lost_; }
  void Clear() { lost_ = false; }

 private:
  void TraceIt(const ibv_wc& completion) const;

  const uint32_t number_;
  QueuePairCounters& counters_;
  bool lost_ = false;
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_COMPLETER_H_
