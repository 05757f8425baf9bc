#ifndef SIM_QUEUES_ADAPTER_H_
#define SIM_QUEUES_ADAPTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer_pool.h"
#include "base/settings.h"
#include "llp/channel.h"
#include "sim/memory/memory.h"
#include "sim/queues/any_queue_pair.h"
#include "transport/network.h"

namespace weft::sim {

// The services of the RNIC for its queue pairs and for the connection manager. Thread safe; outlives its users.
class Adapter {
 public:
  virtual ~Adapter() = default;

  virtual transport::Network& network() = 0;
  virtual BufferPool& pool() = 0;
  virtual MemoryTable& memory() = 0;
  virtual const Settings& settings() const = 0;
  virtual uint64_t host_id() const = 0;  // the same for all Weft ends on one host

  // A queue pair ends. It can no longer be found by its number.
  virtual void ForgetQueuePair(uint32_t number) = 0;
  // Makes every queue pair except `but` release memory that was revoked. The caller holds no queue pair's lock. Returns
  // those whose peers are still writing there.
  using Lent = std::vector<std::shared_ptr<llp::LentMemory>>;
  virtual Lent ForgetRegion(const RegionInfo& gone, const AnyQueuePair* but = nullptr) = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_ADAPTER_H_
