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

// What the RNIC lends to its queue pairs and to who connects them. Thread safe; outlives them.
class Adapter {
 public:
  virtual ~Adapter() = default;

  virtual transport::Network& network() = 0;
  virtual BufferPool& pool() = 0;
  virtual MemoryTable& memory() = 0;
  virtual const Settings& settings() const = 0;
  virtual uint64_t host_id() const = 0;  // tells Weft ends on one host from others

  // A queue pair ends. Nobody finds it by its number any more.
  virtual void ForgetQueuePair(uint32_t number) = 0;
  // Makes every queue pair, `but` one, forget memory that was taken away; without a lock of any. Those whose peers are still writing there.
  using Lent = std::vector<std::shared_ptr<llp::LentMemory>>;
  virtual Lent ForgetRegion(const RegionInfo& gone, const AnyQueuePair* but = nullptr) = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUES_ADAPTER_H_
