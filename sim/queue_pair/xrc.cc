#include <algorithm>
#include <mutex>
#include <utility>

#include "sim/queue_pair/queue_pair.h"
#include "sim/queue_pair/internal.h"

// What is XRC's own at a connected queue pair (InfiniBand specification, volume 1, annex A14): requests name the shared receive queue that
// they are for, in the domain of the queue pair that receives them.
namespace weft::sim {

Service QueuePair::service() const {
  switch (options_.type) {
    case IBV_QPT_UC:
      return Service::kUnreliable;
    case IBV_QPT_XRC_SEND:
      return Service::kXrcSend;
    case IBV_QPT_XRC_RECV:
      return Service::kXrcReceive;
    default:
      return Service::kReliable;
  }
}

bool QueuePair::SelectTarget(uint32_t number) {
  if (!responder_.SelectTarget(number)) return false;
  const std::shared_ptr<CompletionQueue>& completions = responder_.target()->completions();
  if (std::find(attached_.begin(), attached_.end(), completions) == attached_.end()) AttachTo(completions);
  return true;
}

// A program that polls the queue drives the connection. Later: a completion queue that drives us now holds what it needs.
void QueuePair::AttachTo(const std::shared_ptr<CompletionQueue>& queue) {
  attached_.push_back(queue);
  network().Post([weak = weak_from_this(), queue, watch = connection_->watch] {
    auto self = weak.lock();
    if (self == nullptr) return;
    std::lock_guard lock(self->attach_mutex_);
    if (!self->destroyed_) queue->Attach(self, watch);
  });
}

// destroyed_ is set.
void QueuePair::DetachAll() {
  std::vector<std::shared_ptr<CompletionQueue>> attached;
  {
    EngineLock engine(*this);
    attached = std::exchange(attached_, {});
    responder_.ForgetTargets();
  }
  std::lock_guard lock(attach_mutex_);
  for (const auto& queue : attached) queue->Detach(this);
}

}  // namespace weft::sim
