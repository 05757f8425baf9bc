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

// The completion queues whose polls drive a queue pair, and what it leaves to their next poll. Thread safe.
class Drivers {
 public:
  // `options` outlives it.
  explicit Drivers(const QueuePairOptions& options) : options_(options) {}

  // A poll that finds nothing will call RunErrand(). False: no completion queue takes that; there are few queue pairs, and a poll looks at each.
  bool AddErrand();
  // Its own completion queues, those that it was made with, drive `queue_pair` from now on.
  void Attach(const std::shared_ptr<AnyQueuePair>& queue_pair, transport::WatchId watch);
  // So does `queue`, if it does not, once what drives it now is done. With the engine held, which a completion queue may have taken that drives
  // it now.
  void AttachLater(const std::shared_ptr<CompletionQueue>& queue, const std::shared_ptr<AnyQueuePair>& queue_pair, transport::WatchId watch);
  // None does any more, for good. `others`: what TakeOthers() gave with the engine held.
  using Queues = std::vector<std::shared_ptr<CompletionQueue>>;
  Queues TakeOthers() { return std::exchange(others_, {}); }
  void Detach(const AnyQueuePair* queue_pair, const Queues& others);

 private:
  const QueuePairOptions& options_;
  std::array<Errand, 2> errands_;  // of the completion queues for sends and for receives
  Queues others_;                  // that drive it besides, or are about to; guarded by the engine
  struct Gate {
    std::mutex mutex;  // taken before that of a completion queue's queue pairs, and never within it
    bool open = true;
  };
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_DRIVERS_H_
