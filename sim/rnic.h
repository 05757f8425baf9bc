#ifndef SIM_RNIC_H_
#define SIM_RNIC_H_
// (public part; the lead is writing the rest)
#include <memory>

#include "base/result.h"
#include "sim/cm_api.h"
#include "sim/device.h"
#include "sim/memory.h"
#include "sim/queue_pair.h"
#include "transport/network.h"

namespace weft::sim {

// The simulated RNIC: one per process (Process()), or one per simulated host in tests. Thread safe.
class Rnic {
 public:
  static Rnic& Process();          // over the kernel's TCP; made on first use, never destroyed; a fork's child gets its own
  explicit Rnic(transport::Network& network);

  std::shared_ptr<Pd> AllocatePd();
  MemoryTable& memory();
  // Deregisters and makes every stream forget the region; after return no byte of it is touched.
  bool DeregisterMemory(ddp::STag stag);
  Result<std::shared_ptr<QueuePair>, int> CreateQueuePair(QueuePairOptions options);
  CmApi& cm();
};

}  // namespace weft::sim

#endif  // SIM_RNIC_H_
