#ifndef SIM_QUEUES_XRC_DOMAIN_H_
#define SIM_QUEUES_XRC_DOMAIN_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "sim/queues/completion_queue.h"
#include "sim/memory/memory.h"
#include "sim/queues/shared_receive_queue.h"

namespace weft::sim {

// ibv_xrcd: the shared receive queues that may be named by requests to the domain's receiving queue pairs
// (IBV_QPT_XRC_RECV). It belongs to one process: queue pairs hand receives to no other process. Thread safe.
class XrcDomain {
 public:
  // `domain`: a protection domain with no other objects.
  explicit XrcDomain(std::shared_ptr<Pd> domain)
      : domain_(std::move(domain)), completions_(std::make_shared<CompletionQueue>(1, nullptr, nullptr, nullptr)) {}

  void Add(const std::shared_ptr<SharedReceiveQueue>& queue);
  void Remove(uint32_t number);
  // nullptr: there is none with that number.
  std::shared_ptr<SharedReceiveQueue> Find(uint32_t number);

  // Placeholders for a receiving queue pair, which has no memory and completions of its own: those of the request's
  // shared receive queue are used.
  const std::shared_ptr<Pd>& domain() const { return domain_; }
  const std::shared_ptr<CompletionQueue>& completions() const { return completions_; }

 private:
  const std::shared_ptr<Pd> domain_;
  const std::shared_ptr<CompletionQueue> completions_;
  std::mutex mutex_;  // guards queues_; a leaf
  std::unordered_map<uint32_t, std::weak_ptr<SharedReceiveQueue>> queues_;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_XRC_DOMAIN_H_
