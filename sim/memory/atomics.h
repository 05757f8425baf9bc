#ifndef SIM_MEMORY_ATOMICS_H_
#define SIM_MEMORY_ATOMICS_H_

#include <cstdint>

#include "rdmap/host.h"

namespace weft::sim {

// Carries `operation` (RFC 7306 section 5.1) out on `memory`, atomically towards every thread and process that uses the processor's
// own atomics on it; returns what was there. `memory` is 64-bit aligned.
uint64_t CarryOut(const rdmap::AtomicOperation& operation, uint64_t* memory);

}  // namespace weft::sim

#endif  // SIM_MEMORY_ATOMICS_H_
