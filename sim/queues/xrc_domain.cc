#include "sim/queues/xrc_domain.h"

namespace weft::sim {

void XrcDomain::Add(const std::shared_ptr<SharedReceiveQueue>& queue) {
  std::lock_guard lock(mutex_);
  queues_[queue->number()] = queue;
}

void XrcDomain::Remove(uint32_t number) {
  std::lock_guard lock(mutex_);
  queues_.erase(number);
}

std::shared_ptr<SharedReceiveQueue> XrcDomain::Find(uint32_t number) {
  std::lock_guard lock(mutex_);
  const auto found = queues_.find(number);
  return found != queues_.end() ? found->second.lock() : nullptr;
}

}  // namespace weft::sim
