#ifndef BENCH_COLLECTIVES_MODEL_MPICH_H_
#define BENCH_COLLECTIVES_MODEL_MPICH_H_

#include "bench/collectives_model/programs.h"

namespace weft::bench {

// What MPICH 4.0 chooses by the defaults of its control variables (MPIR_CVAR_*, as its documentation lists them), for a
// commutative predefined operation and buffers that are not in place. The names are those of Weft's algorithms that do
// the same. Not modelled: shared memory within a host.
Way WayOfMpich(const Case& one, const Layout& layout);

}  // namespace weft::bench

#endif  // BENCH_COLLECTIVES_MODEL_MPICH_H_
