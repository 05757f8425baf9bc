#ifndef SIM_CM_ENGINE_H_
#define SIM_CM_ENGINE_H_

#include <memory>

#include "sim/cm_api.h"

namespace weft::sim {

class Rnic;

// The RNIC's connection management (sim/cm_api.h). Lives as long as the RNIC.
std::unique_ptr<CmApi> MakeCmEngine(Rnic& rnic);

}  // namespace weft::sim

#endif  // SIM_CM_ENGINE_H_
