#ifndef SIM_CM_ENGINE_H_
#define SIM_CM_ENGINE_H_

#include <memory>

#include "sim/cm/api.h"
#include "sim/cm/surroundings.h"

namespace weft::sim {

// The RNIC's connection management (sim/cm/api.h).
std::unique_ptr<CmApi> MakeCmEngine(const Surroundings& around);

}  // namespace weft::sim

#endif  // SIM_CM_ENGINE_H_
