#ifndef SIM_CM_ENGINE_H_
#define SIM_CM_ENGINE_H_

#include <infiniband/verbs.h>

#include <memory>

#include "sim/cm/api.h"
#include "sim/queues/adapter.h"

namespace weft::sim {

class QueuePair;

// Finds the queue pair behind an ibv_qp; nullptr: there is none.
using QueuePairResolver = std::shared_ptr<QueuePair> (*)(ibv_qp*);

// The RNIC's connection management (sim/cm/api.h). `adapter` outlives it.
std::unique_ptr<CmApi> MakeCmEngine(Adapter& adapter, QueuePairResolver queue_pair_of);

}  // namespace weft::sim

#endif  // SIM_CM_ENGINE_H_
