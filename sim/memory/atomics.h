#ifndef SIM_MEMORY_ATOMICS_H_
#define SIM_MEMORY_ATOMICS_H_

#include <cstdint>

#include "rdmap/host.h"

namespace weft::sim {

// Carries out `operation` (RFC 7306 section 5.1) on `memory`, atomically for all threads and processes that use the
// processor's own atomics on it. Returns the previous value. `memory` is 64-bit aligned.
uint64_t CarryOut(const rdmap::AtomicOperation& operation, uint64_t* memory);

}  // namespace weft::sim

#endif  // SIM_MEMORY_ATOMICS_H_
