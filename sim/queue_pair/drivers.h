#ifndef SIM_QUEUE_PAIR_DRIVERS_H_
#define SIM_QUEUE_PAIR_DRIVERS_H_

#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/queues/any_queue_pair.h"
#include "sim/queues/completion_queue.h"
#include "sim/queues/queue_pair_options.h"

namespace weft::sim {

// The completion queues whose polls drive a queue pair, and the work that it leaves to their next poll. Thread safe.
class Drivers {
 public:
  // `options` outlives it.
  explicit Drivers(const QueuePairOptions& options) : options_(options) {}

  // A poll that finds nothing will call RunErrand(). Returns false if no completion queue does this: with few queue
  // pairs, a poll looks at each of them anyway.
  bool AddErrand();
  // The completion queues with which `queue_pair` was created drive it from now on.
  void Attach(const std::shared_ptr<AnyQueuePair>& queue_pair, transport::WatchId watch);
  // `queue` drives it, too, once the current driver is done, unless it already does. Called with the engine held; a
  // completion queue that drives it now may hold it.
  void AttachLater(const std::shared_ptr<CompletionQueue>& queue, const std::shared_ptr<AnyQueuePair>& queue_pair, transport::WatchId watch);
  // No completion queue drives it any more. `others`: the result of TakeOthers(), called with the engine held.
  using Queues = std::vector<std::shared_ptr<CompletionQueue>>;
  Queues TakeOthers() { return std::exchange(others_, {}); }
  void Detach(const AnyQueuePair* queue_pair, const Queues& others);

 private:
  const QueuePairOptions& options_;
  std::array<Errand, 2> errands_;  // of the completion queues for sends and for receives
  Queues others_;                  // further queues that drive it, or are about to; guarded by the engine
  struct Gate {
    std::mutex mutex;  // locked before that of a completion queue's queue pairs, never after it
    bool open = true;
  };
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_DRIVERS_H_
