#include "sim/queue_pair/drivers.h"

#include <algorithm>
#include <utility>

namespace weft::sim {

bool Drivers::AddErrand() {
  const bool with_sends = options_.send_cq->takes_errands();
  const bool with_receives = options_.receive_cq != options_.send_cq && options_.receive_cq->takes_errands();
  if (with_sends) options_.send_cq->AddErrand(errands_[0]);
  if (with_receives) options_.receive_cq->AddErrand(errands_[1]);
  return with_sends || with_receives;
}

void Drivers::Attach(const std::shared_ptr<AnyQueuePair>& queue_pair, transport::WatchId watch) {
  std::lock_guard lock(gate_->mutex);
  if (!gate_->open) return;  // meanwhile: nobody would detach it
  options_.send_cq->Attach(queue_pair, watch, &errands_[0]);
  if (options_.receive_cq != options_.send_cq) options_.receive_cq->Attach(queue_pair, watch, &errands_[1]);
}

void Drivers::AttachLater(const std::shared_ptr<CompletionQueue>& queue, const std::shared_ptr<AnyQueuePair>& queue_pair,
                          transport::WatchId watch) {
  if (std::find(others_.begin(), others_.end(), queue) != others_.end()) return;
  others_.push_back(queue);
  queue_pair->network().Post([gate = gate_, queue, watch, weak = std::weak_ptr(queue_pair)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    std::lock_guard lock(gate->mutex);
    if (gate->open) queue->Attach(alive, watch);
  });
}

void Drivers::Detach(const AnyQueuePair* queue_pair, const Queues& others) {
  std::lock_guard lock(gate_->mutex);
  gate_->open = false;
  options_.send_cq->Detach(queue_pair);
  options_.receive_cq->Detach(queue_pair);
  for (const auto& queue : others) queue->Detach(queue_pair);
}

}  // namespace weft::sim
